import * as fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkExport } from '../../src/audit/check-export';
import { findPlace } from '../../src/audit/event-places';
import { exportLines, type Conditions } from '../../src/audit/export';
import type { LedgerLog } from '../../src/event-log/streams';
import { fillBusyLog } from '../support/busy-log';
import { eventsOf } from '../support/events';
import { saysHowFar } from '../support/campaign';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';
import { seed, seeded } from '../support/property';

const EVENTS = Number(process.env['EVENTS'] ?? '120');
const TENANT = randomUUID();

const exported = async (ledgerLog: LedgerLog, asked: Partial<Conditions> = {}): Promise<string> => {
  const conditions = { view: 'operator', filter: {}, ...asked } as const;
  const { after } = conditions;
  const isOfTenant = conditions.view === 'tenant' && after !== undefined;
  const from = isOfTenant ? (await findPlace(ledgerLog, TENANT, after))?.position : after;
  const range = { after: from, upTo: (await ledgerLog.log.head())?.position };
  const file = join(freshFolder(), 'export');
  const saysDone = saysHowFar('lines exported', conditions.limit ?? EVENTS);
  let count = 0;
  for await (const { lines } of exportLines(ledgerLog, conditions, range, {
    onUnreadable: () => undefined,
  })) {
    appendFileSync(file, lines.map((line) => `${line}\n`).join(''));
    saysDone((count += lines.length));
  }
  return file;
};

const linesIn = (file: string): readonly string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1);

const altered = (file: string, change: (lines: readonly string[]) => readonly string[]): string => {
  const other = `${file}-altered`;
  writeFileSync(
    other,
    change(linesIn(file))
      .map((line) => `${line}\n`)
      .join(''),
  );
  return other;
};

describe('an exported file', () => {
  let ledgerLog: LedgerLog;
  const append = async (stream: string, type: string, data: object, expected: 'no_stream' | number) =>
    ledgerLog.log.append(stream, [{ id: randomUUID(), type, data: { ...data }, metadata: {} }], expected);
  beforeAll(async () => {
    ledgerLog = await openLogIn(freshFolder());
    await fillBusyLog(ledgerLog, EVENTS, 7);
    const { streams } = ledgerLog;
    const odd = { entityType: '=1+1', operation: 'odd', entityId: '"a,b"\n\r\u2028', message: '\ud800' };
    await append(streams.activity(randomUUID()), 'ActivityReported', odd, 'no_stream');
    const settings = { fingerprintTokens: false, deduplicateTokens: false };
    const data = { name: 'Acme', ownerId: randomUUID(), settings, includedMonthlyActiveTokens: 0 };
    await append(streams.tenant(TENANT), 'TenantCreated', data, 'no_stream');
    await append(streams.activity(TENANT), 'TokenCreated', { entityId: 't0' }, 'no_stream');
    await append(streams.activity(TENANT), 'TokenCreated', { entityId: 't1' }, 0);
    await append(streams.tenant(TENANT), 'TenantPlanChanged', { includedMonthlyActiveTokens: 1 }, 0);
  });
  afterAll(() => ledgerLog.log.close());

  it('is confirmed, also by standard tools', async () => {
    const file = await exported(ledgerLog);
    const saysDone = saysHowFar('lines checked', EVENTS);
    const { trailer, difference } = await checkExport(ledgerLog, file, saysDone);
    expect(difference).toBeUndefined();
    expect(trailer).toMatchObject({ events: EVENTS + 5, up_to: (await ledgerLog.log.head())?.position });
    const sum = execFileSync('sh', ['-c', `head -n -1 ${file} | sha256sum`], { encoding: 'utf8' });
    expect(sum.slice(0, 64)).toBe(trailer.sha256);
  });

  it('is confirmed with its filter, start and limit, even if the log has grown since', async () => {
    const [first] = await eventsOf(ledgerLog.log.readStream(ledgerLog.streams.tenant(TENANT)));
    const ofTenant = { view: 'tenant', filter: { tenants: [TENANT] } } as const;
    const requests: readonly Partial<Conditions>[] = [
      { filter: { trace: 'trace-17' } },
      { limit: 10 },
      { after: first!.position, limit: 3 },
      { filter: { types: ['Nothing'] } },
      ofTenant,
      { ...ofTenant, after: 'activity:0' },
      { ...ofTenant, limit: 2 },
      { view: 'tenant', filter: { tenants: [randomUUID()] } },
    ];
    const files = await Promise.all(requests.map((conditions) => exported(ledgerLog, conditions)));
    await append(ledgerLog.streams.activity(TENANT), 'TokenCreated', { entityId: 't2' }, 1);
    for (const file of files) expect((await checkExport(ledgerLog, file)).difference).toBeUndefined();
  });

  it(seeded('reveals any changed byte in its lines'), async () => {
    const file = await exported(ledgerLog, { limit: 20 });
    const bytes = readFileSync(file);
    // Without the last line feed, the trailer would not be its own line, and the file not an export.
    const lines = bytes.subarray(0, bytes.lastIndexOf('\n{"trailer"'));
    const changedByte = fc.tuple(fc.nat(lines.length - 1), fc.integer({ min: 1, max: 255 }));
    const isNoticed = fc.asyncProperty(changedByte, async ([at, by]) => {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ by;
      writeFileSync(`${file}-changed`, changed);
      expect((await checkExport(ledgerLog, `${file}-changed`)).difference).toBeDefined();
    });
    await fc.assert(isNoticed, { seed, numRuns: 50 });
  });

  const last = (change: (line: string) => string) => (lines: readonly string[]) => [
    ...lines.slice(0, -1),
    change(lines.at(-1) ?? ''),
  ];
  const alterations: readonly (readonly [string, number, (lines: readonly string[]) => readonly string[]])[] =
    [
      ['an altered line', 2, (lines) => lines.with(1, (lines[1] ?? '').replace('tok_', 'TOK_'))],
      ['a missing line', 2, (lines) => lines.toSpliced(1, 1)],
      ['a repeated line', 3, (lines) => lines.toSpliced(1, 0, lines[1] ?? '')],
      ['two lines in another order', 2, (lines) => lines.toSpliced(1, 2, lines[2] ?? '', lines[1] ?? '')],
      ['no end', 4, (lines) => lines.toSpliced(3, 2)],
      ['another digest', 6, last((line) => line.replace(/.{4}"}}$/, 'dead"}}'))],
      [
        'a repeated member in the trailer',
        6,
        last((line) => line.replace('"events"', '"events":1,"events"')),
      ],
      ['an additional member', 6, last((line) => line.replace('"events"', '"approved":true,"events"'))],
      ['an additional member beside it', 6, last((line) => line.replace(/}$/, ',"approved":true}'))],
      ['other whitespace', 6, last((line) => line.replace('"events":', '"events": '))],
      ['a number written differently', 6, last((line) => line.replace(/"events":(\d+)/, '"events":$1.0'))],
      ['its trailer twice', 7, (lines) => [...lines, lines.at(-1) ?? '']],
    ];
  it.each(alterations)('with %s differs in line %i', async (_, line, change) => {
    const file = await exported(ledgerLog, { limit: 5 });
    const other = altered(file, change);
    expect(linesIn(other)).not.toEqual(linesIn(file));
    const { difference } = await checkExport(ledgerLog, other);
    expect(difference).toEqual({ line, ...(line > 6 ? {} : { expected: linesIn(file)[line - 1] }) });
  });

  it.each([
    ['without a trailer', (lines: readonly string[]) => lines.slice(0, -1)],
    ['with an unknown condition', last((line) => line.replace('"filter":{', '"filter":{"reviewed":"yes"'))],
    ['with a condition of another kind', last((line) => line.replace('"filter":{', '"filter":{"tenants":7'))],
  ])('%s is refused', async (_, change) => {
    const other = altered(await exported(ledgerLog, { limit: 5 }), change);
    await expect(checkExport(ledgerLog, other)).rejects.toMatchObject({ code: 'file_unreadable' });
  });

  it('that is absent or from another log is refused', async () => {
    const file = await exported(ledgerLog);
    await expect(checkExport(ledgerLog, `${file}-absent`)).rejects.toMatchObject({ code: 'file_unreadable' });
    const another = await openLogIn(freshFolder());
    try {
      await expect(checkExport(another, file)).rejects.toThrow(/ was exported from the log /);
    } finally {
      await another.log.close();
    }
  });

  it('of a tenant from which events before its end were removed differs there, whatever its trailer says', async () => {
    const file = await exported(ledgerLog, {
      view: 'tenant',
      filter: { tenants: [TENANT], types: ['TokenCreated'] },
    });
    const cut = altered(file, (lines) =>
      last((line) => line.replace(/"activity":\d+/, '"activity":0'))(lines.toSpliced(1, lines.length - 2)),
    );
    expect((await checkExport(ledgerLog, cut)).difference).toMatchObject({ line: 2 });
  });
});
