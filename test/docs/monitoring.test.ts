import { parse } from 'yaml';
import { freshFolder } from '../support/folders';
import { readMetrics } from '../support/metrics';
import { operatorAt } from '../support/operator';
import { textOf } from './pages';
import { metricsOfNothing } from './tables';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly description: string };
}

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

const rules = (parse(textOf('docs/monitoring/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const dashboard = JSON.parse(textOf('docs/monitoring/dashboard.json')) as Dashboard;

/** From others: Prometheus itself, and its node and blackbox exporters. */
const FOREIGN = new Set([
  'up',
  'node_filesystem_avail_bytes',
  'node_filesystem_size_bytes',
  'probe_ssl_earliest_cert_expiry',
]);

const namesIn = (expr: string): readonly string[] =>
  expr
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]|\b(?:by|on) \([^)]*\)/g, '')
    .match(/[a-z_][a-z0-9_]*(?![a-z0-9_]*\()/g)
    ?.filter((word) => word.includes('_') || FOREIGN.has(word))
    .filter((word) => word !== 'histogram_quantile') ?? [];

/** Metrics that make no useful chart over time. */
const NOT_SHOWN = ['tenant_ledger_build_info', 'tenant_ledger_rate_limits_shared'];

describe('the files in docs/monitoring', () => {
  let known: ReadonlySet<string>;
  beforeAll(async () => {
    const { families } = readMetrics(await metricsOfNothing().metrics());
    known = new Set(
      [...families].flatMap(([name, { type }]) =>
        type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
      ),
    );
  });

  it.each(rules.map((rule) => [rule.alert, rule] as const))('%s uses metrics that exist', (_, rule) => {
    const names = namesIn(rule.expr);
    expect(names).not.toEqual([]);
    for (const name of names) expect([...known, ...FOREIGN]).toContain(name);
  });

  it('every alert names what shows the problem and what fixes it, with commands that exist', async () => {
    const texts = rules.map(({ annotations }) => annotations.description);
    for (const text of texts) expect(text).toMatch(/^Show: .+ Fix: /s);
    const named = new Set(
      texts.flatMap((text) =>
        Array.from(text.matchAll(/`tenant-ledger ([a-z]+(?: [a-z][a-z-]*\b)?)/g), ([, words = '']) => words),
      ),
    );
    expect(named.size).toBeGreaterThan(0);
    const { runAll } = operatorAt(freshFolder());
    const helps = await runAll([...named].map((line) => `${line} --help`));
    for (const [at, line] of [...named].entries())
      expect(helps[at]?.stdout).toContain(`Usage: tenant-ledger ${line}`);
  });

  it('the dashboard uses metrics that exist, and all of ours', () => {
    const asked = dashboard.panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => namesIn(expr)));
    for (const name of asked) expect([...known]).toContain(name);
    for (const { targets } of dashboard.panels)
      expect(targets.flatMap(({ expr }) => namesIn(expr))).not.toEqual([]);
    const shown = new Set(asked.map((name) => name.replace(/_(bucket|count|sum)$/, '')));
    const notShown = [...known].filter(
      (name) => name.startsWith('tenant_ledger_') && !shown.has(name.replace(/_(bucket|count|sum)$/, '')),
    );
    expect(notShown.toSorted()).toEqual(NOT_SHOWN);
  });
});
