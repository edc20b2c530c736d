import { makeMetrics } from '../../src/app/metrics';
import { settingNames, settings } from '../../src/configuration';
import { eventSchemas } from '../../src/domain/events';
import { specifiedPolicies } from '../../src/limits/policies';
import { problems, type Problem } from '../../src/problems';

/** The tables of the documentation, generated from the code. */
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

const code = (text: string): string => (text === '' ? '(empty)' : `\`${text}\``);

const configuration = (): string =>
  table(
    ['Variable', 'Default', 'Example', 'Meaning'],
    settingNames.map((name) => {
      const { fallback, example, meaning } = settings[name];
      return [code(name), code(fallback), code(example), meaning];
    }),
  );

const errorRows = (wanted: (problem: Problem) => boolean): readonly (readonly string[])[] =>
  Object.entries(problems)
    .filter(([, problem]) => wanted(problem))
    .map(([name, { status = [], meaning }]) => [code(name), status, meaning].flat().map(String));

const httpErrors = (): string =>
  table(
    ['Code', 'Status', 'Meaning, and what to do'],
    errorRows(({ status }) => status !== undefined),
  );

const commandLineErrors = (): string =>
  table(
    ['Code', 'Meaning, and what to do'],
    errorRows(({ status }) => status === undefined),
  );

interface Shape {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
}

const dataOf = (schema: object): string => {
  const { properties, required } = schema as Shape;
  const own = Object.keys(properties).filter((name) => name !== 'tenantId');
  return own.map((name) => code(required.includes(name) ? name : `${name}?`)).join(', ') || 'none';
};

/** Types with the same data share a row. */
const events = (): string => {
  const rows = new Map<string, string[]>();
  for (const [type, schema] of Object.entries(eventSchemas)) {
    const data = dataOf(schema);
    rows.set(data, [...(rows.get(data) ?? []), code(type)]);
  }
  return table(
    ['Events', 'Data'],
    Array.from(rows, ([data, types]) => [types.join(', '), data]),
  );
};

const rateLimits = (): string =>
  table(
    ['Name', 'Methods', 'Paths', 'Requests', 'Window', 'Block'],
    specifiedPolicies.map(({ name, methods, paths, limit, windowSeconds, blockSeconds }) => [
      code(name),
      methods.map(code).join(', '),
      paths.map(code).join(', '),
      String(limit),
      `${windowSeconds} s`,
      `${blockSeconds} s`,
    ]),
  );

/** As they are before a program has opened anything. */
export const metricsOfNothing = () =>
  makeMetrics(() => ({
    isReady: false,
    isLogUp: false,
    limits: undefined,
    backupAge: undefined,
    status: () => Promise.reject(new Error('closed')),
  })).registry;

/** prom-client keeps the names of labels where its types do not show them. */
interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

/** Those of Node.js and of the process are described by their library. */
const metrics = (): string =>
  table(
    ['Metric', 'Labels', 'Meaning'],
    metricsOfNothing()
      .getMetricsAsArray()
      .map((metric) => metric as unknown as Described)
      .filter(({ name }) => name.startsWith('tenant_ledger_'))
      .map(({ name, help, labelNames }) => [code(name), labelNames.map(code).join(', ') || 'none', help]),
  );

export const tables: Readonly<Record<string, readonly { readonly name: string; readonly text: string }[]>> = {
  'docs/configuration.md': [{ name: 'configuration', text: configuration() }],
  'docs/errors.md': [
    { name: 'http errors', text: httpErrors() },
    { name: 'command line errors', text: commandLineErrors() },
  ],
  'docs/limits.md': [{ name: 'rate limits', text: rateLimits() }],
  'docs/events.md': [{ name: 'events', text: events() }],
  'docs/monitoring.md': [{ name: 'metrics', text: metrics() }],
};
