import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { bench, givenNumbers, median } from './builds';
import { startFloor } from './cluster-floor';
import { get, MANY, measureByTurns, put, startService, type Load, type Target } from './http-load';
import { startPrinting } from './processes';
import { inOwnPlace, mongodbServer } from './stores';

/**
 * What does a read and a write cost in both profiles, beside a bare Koa, the service's libraries alone, and the least that
 * such a write takes? All take turns. Writes the table and the picture of `docs/costs.md`.
 * `npm run bench -- picture [ROUNDS] [SECONDS]`
 */
const [ROUNDS = 3, SECONDS = 4] = givenNumbers;

const DOCS = resolve(__dirname, '..', '..', 'docs');
const QUIET = { LOG_LEVEL: 'warn', RATE_LIMITS: 'off' };

interface Bar {
  readonly panel: Load['method'];
  readonly name: string;
  /** Requests per second, of each round. */
  readonly rates: readonly number[];
}

const other = (file: string, ...words: readonly string[]) =>
  startPrinting([join(__dirname, `${file}.js`), '0', '0', ...words]);

const measureAll = async (root: string, mongodbUrl: string): Promise<readonly Bar[]> =>
  inOwnPlace(mongodbUrl, async (place) => {
    const keys = Array.from({ length: MANY }, (_, n) => `tenant-${n}`);
    const embedded = await startService(root, QUIET);
    const clustered = await startService(root, { ...QUIET, ...place });
    const targets: readonly (readonly [Bar['panel'], string, string, Target])[] = [
      ['GET', 'bare Koa that says hello', '/', { server: await other('http', 'hello'), keys }],
      ['GET', 'the libraries alone', '/tenants/self', { server: await other('http', 'libraries'), keys }],
      ['GET', 'embedded', '/tenants/self', embedded],
      ['GET', 'clustered', '/tenants/self', clustered],
      [
        'PUT',
        'the least on SQLite',
        '',
        { server: await other('write-floor', mkdtempSync(join(root, 'f-'))), keys },
      ],
      ['PUT', 'embedded', '', embedded],
      ['PUT', 'the least in a cluster', '', { server: await startFloor(place), keys }],
      ['PUT', 'clustered', '', clustered],
    ];
    const loads = new Map<Load, Target>();
    for (const [panel, name, path, target] of targets)
      loads.set(panel === 'GET' ? get(name, path) : put(name, MANY), target);
    const measured = await measureByTurns(loads, ROUNDS, SECONDS);
    for (const server of new Set(targets.map(([, , , target]) => target.server))) await server.stop();
    return Array.from(measured, ([{ method, name }, each]) => ({
      panel: method,
      name,
      rates: each.map(({ rate }) => Math.round(rate)),
    }));
  });

const shown = (rate: number): string => Math.round(rate).toLocaleString('en-GB');

const conditions = (): string => {
  const model = cpus()[0]?.model ?? 'unknown';
  const { dependencies } = JSON.parse(readFileSync(join(DOCS, '..', 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const versions = ['koa', 'mongodb'].map((name) => `${name} ${dependencies[name]}`).join(', ');
  const date = new Date().toISOString().slice(0, 10);
  return `${date}: Node ${process.versions.node}, ${versions}; ${cpus().length} cores (${model.trim()}) for clients, program and stores; ${MANY} connections, ${MANY} tenants, ${ROUNDS} runs of ${SECONDS} s by turns.`;
};

const tableOf = (bars: readonly Bar[]): string =>
  [
    '| Requests per second | Median | Runs |',
    '| --- | --- | --- |',
    ...bars.map(
      ({ panel, name, rates }) =>
        `| ${panel}: ${name} | ${shown(median(rates))} | ${rates.map(shown).join(', ')} |`,
    ),
  ].join('\n');

const ROW = 26;
const LEFT = 270;
const WIDTH = 760;

const barsOf = (bars: readonly Bar[], top: number): string => {
  const most = Math.max(...bars.map(({ rates }) => median(rates)));
  return bars
    .map(({ name, rates }, n) => {
      const [y, rate] = [top + n * ROW, median(rates)];
      const width = Math.max(1, Math.round(((WIDTH - LEFT - 80) * rate) / most));
      const kind = /^(embedded|clustered)$/.test(name) ? 'ours' : 'other';
      return `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end">${name}</text><rect class="${kind}" x="${LEFT}" y="${y}" width="${width}" height="20" rx="2"/><text x="${LEFT + width + 8}" y="${y + 15}">${shown(rate)}</text>`;
    })
    .join('\n');
};

/** Readable on light and on dark pages. */
const STYLE =
  'text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-weight:600}.ours{fill:#2f6feb}.other{fill:#8c959f}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.other{fill:#6e7681}}';

const pictureOf = (bars: readonly Bar[]): string => {
  const panels = ['GET', 'PUT'].map((panel) => bars.filter((bar) => bar.panel === panel));
  const [reads = [], writes = []] = panels;
  const second = 40 + reads.length * ROW + 40;
  const height = second + writes.length * ROW + 8;
  const title = (y: number, text: string): string => `<text class="title" x="0" y="${y}">${text}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Requests per second of both profiles, beside a bare Koa, the libraries alone, and the least that a write takes">
<style>${STYLE}</style>
${title(20, `GET /tenants/self: requests per second, ${MANY} connections`)}
${barsOf(reads, 32)}
${title(second - 12, `PUT /tenants/self: durable and shown, per second, ${MANY} connections`)}
${barsOf(writes, second)}
</svg>
`;
};

const BLOCK = /<!-- picture -->[^]*<!-- end of the picture -->/;

void bench(async (root) => {
  const mongodb = await mongodbServer();
  const bars = await measureAll(root, mongodb.url);
  await mongodb.close();
  writeFileSync(join(DOCS, 'costs.svg'), pictureOf(bars));
  const page = join(DOCS, 'costs.md');
  const text = readFileSync(page, 'utf8');
  if (!BLOCK.test(text)) throw new Error(`${page} has no place for the picture.`);
  const alt = 'Requests per second of both profiles, beside what else could be';
  const block = `<!-- picture -->\n\n![${alt}](costs.svg)\n\n${tableOf(bars)}\n\n${conditions()}\n\n<!-- end of the picture -->`;
  writeFileSync(
    page,
    text.replace(BLOCK, () => block),
  );
  console.log(`\n${tableOf(bars)}\n\n${conditions()}\nNow run: npx prettier --write docs/costs.md`);
});
