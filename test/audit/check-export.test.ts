import * as fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkExport } from '../../src/audit/check-export';
import { checkOffline } from '../../src/audit/check-offline';
import { eventFormats, eventLines, type EventFormat } from '../../src/audit/event-lines';
import {
  exportEvents,
  trailerBuilder,
  trailerLine,
  type ExportRange,
  type Trailer,
} from '../../src/audit/export';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { streamNames } from '../../src/event-log/streams';
import { fillBusyLog } from '../support/busy-log';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/log-under-test';
import { seed, seeded } from '../support/property';

const EVENTS = 120;

type ExportRequest = ExportRange & { readonly format: EventFormat };

const exported = async (ledgerLog: LedgerLog, request: ExportRequest): Promise<string> => {
  const file = join(freshFolder(), 'export');
  const trail = trailerBuilder();
  const lines = eventLines(request.format, ledgerLog.streams);
  let text = '';
  let last: string | undefined;
  for await (const chunk of exportEvents(
    ledgerLog,
    request,
    { lines, onUnreadable: () => undefined },
    trail,
  )) {
    text += chunk.bytes.toString();
    last = chunk.last?.position;
  }
  const { upTo, ...asked } = request;
  const conditions = { view: 'operator', ...asked } as const;
  const extent = { log: await ledgerLog.log.identity(), up_to: trail.isFull(conditions) ? last : upTo };
  writeFileSync(file, `${text}${trailerLine(trail.trailer(conditions, extent))}\n`);
  return file;
};

const altered = (file: string, change: (lines: string[]) => string[]): string => {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const other = `${file}-altered`;
  writeFileSync(
    other,
    change(lines)
      .map((line) => `${line}\n`)
      .join(''),
  );
  return other;
};

describe('an exported file', () => {
  let ledgerLog: LedgerLog;
  let head: string;
  beforeAll(async () => {
    ledgerLog = await openLogIn(freshFolder());
    await fillBusyLog(ledgerLog, EVENTS, 7);
    const odd = { entityType: '=1+1', operation: 'odd', entityId: '"a,b"\n\r\u2028', message: '\ud800' };
    const event = { id: randomUUID(), type: 'ActivityReported', data: odd, metadata: { traceId: '-1' } };
    await ledgerLog.log.append(ledgerLog.streams.activity(randomUUID()), [event], 'no_stream');
    head = (await ledgerLog.log.head())?.position ?? '';
  });
  afterAll(() => ledgerLog.log.close());

  const requestIn = (format: EventFormat, more: Partial<ExportRequest> = {}): ExportRequest => ({
    format,
    filter: {},
    upTo: head,
    ...more,
  });

  it.each(eventFormats)('in %s is confirmed as complete, also by standard tools', async (format) => {
    const file = await exported(ledgerLog, requestIn(format));
    const checked = await checkExport(ledgerLog, file);
    expect(checked.difference).toBeUndefined();
    expect(checked.trailer).toMatchObject({ events: EVENTS + 1, last_position: head });
    const sum = execFileSync('sh', ['-c', `head -n -1 ${file} | sha256sum`], { encoding: 'utf8' });
    expect(sum.slice(0, 64)).toBe(checked.trailer.sha256);
  });

  it('is complete for its filter, range and limit, even if the log has grown since', async () => {
    const [, after = ''] = (await eventsOf(ledgerLog.log.readAll())).map(({ position }) => position);
    const requests: readonly Partial<ExportRequest>[] = [
      { filter: { trace: 'trace-17' } },
      { limit: 10 },
      { after, limit: 3 },
      { filter: { types: ['Nothing'] } },
    ];
    const files = await Promise.all(requests.map((more) => exported(ledgerLog, requestIn('ndjson', more))));
    const event = { id: randomUUID(), type: 'TokenCreated', data: { entityId: 't' }, metadata: {} };
    await ledgerLog.log.append(ledgerLog.streams.activity(randomUUID()), [event], 'no_stream');
    for (const file of files) expect((await checkExport(ledgerLog, file)).difference).toBeUndefined();
  });

  it.each(eventFormats)(seeded('in %s reveals any changed byte in its lines'), async (format) => {
    const file = await exported(ledgerLog, requestIn(format, { limit: 20 }));
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

  it('has its first difference named', async () => {
    const file = await exported(ledgerLog, requestIn('ndjson'));
    const lines = readFileSync(file, 'utf8').split('\n');
    const [second = '', third = ''] = lines.slice(1).map((line) => /"id":"([^"]+)"/.exec(line)?.[1]);
    const stranger = randomUUID();
    const cases: readonly (readonly [(lines: string[]) => string[], string])[] = [
      [
        (all) => all.map((line, at) => (at === 1 ? line.replace('tok_', 'TOK_') : line)),
        `event ${second} was altered.`,
      ],
      [(all) => all.toSpliced(1, 1), `event ${second} is missing before event ${third}.`],
      [
        (all) => all.toSpliced(1, 0, (all[1] ?? '').replace(second, stranger)),
        `event ${stranger} was added before event ${second}.`,
      ],
      [
        (all) => all.toSpliced(1, 2, all[2] ?? '', all[1] ?? ''),
        `event ${third} is where event ${second} should be: the order was changed.`,
      ],
    ];
    for (const [change, what] of cases)
      expect((await checkExport(ledgerLog, altered(file, change))).difference).toEqual({ line: 2, what });
    const cut = altered(file, (all) => all.toSpliced(-3, 2));
    expect((await checkExport(ledgerLog, cut)).difference?.what).toMatch(
      /is missing, and whatever came after it\.$/,
    );
    const longer = altered(file, (all) => all.toSpliced(-1, 0, (all[1] ?? '').replace(second, stranger)));
    expect((await checkExport(ledgerLog, longer)).difference?.what).toMatch(/^event .* was added: /);
    const otherSum = altered(file, (all) => [
      ...all.slice(0, -1),
      (all.at(-1) ?? '').replace(/.{4}"}}$/, 'dead"}}'),
    ]);
    expect((await checkExport(ledgerLog, otherSum)).difference?.what).toBe(
      'the trailer was altered: sha256.',
    );
  });

  it('that is truncated, or from another log, is refused', async () => {
    const file = await exported(ledgerLog, requestIn('ndjson'));
    const withoutTrailer = altered(file, (all) => all.slice(0, -1));
    await expect(checkExport(ledgerLog, withoutTrailer)).rejects.toMatchObject({ code: 'file_unreadable' });
    await expect(checkExport(ledgerLog, `${file}-absent`)).rejects.toMatchObject({ code: 'file_unreadable' });
    const another = await openLogIn(freshFolder());
    try {
      await expect(checkExport(another, file)).rejects.toThrow(/ was exported from the log /);
    } finally {
      await another.log.close();
    }
  });

  it('contains no text that a spreadsheet takes for a formula', async () => {
    const file = await exported(ledgerLog, requestIn('csv'));
    const line =
      readFileSync(file, 'utf8')
        .split('\n')
        .find((text) => text.includes('ActivityReported')) ?? '';
    expect(line).toContain(",'-1,");
    expect(line).not.toMatch(/(^|,)"?[=+\-@]/);
  });

  const withTrailer = (file: string, change: (line: string) => string): string =>
    altered(file, (lines) => [...lines.slice(0, -1), change(lines.at(-1) ?? '')]);

  const forms: readonly (readonly [string, (line: string) => string])[] = [
    ['a repeated member', (line) => line.replace('"complete"', '"events":1,"complete"')],
    ['a repeated trailer', (line) => line.replace('{"trailer"', '{"trailer":{},"trailer"')],
    ['an additional member', (line) => line.replace('"complete"', '"approved":true,"complete"')],
    ['an additional member beside it', (line) => line.replace(/}$/, ',"approved":true}')],
    ['an additional condition', (line) => line.replace('"filter":{', '"filter":{"reviewed":"yes"')],
    ['other whitespace', (line) => line.replace('"complete":', '"complete": ')],
    ['whitespace at its end', (line) => `${line} `],
    ['another order', (line) => line.replace(/("log":"[^"]+"),("view":"[^"]+")/, '$2,$1')],
    ['a number written differently', (line) => line.replace(/"events":(\d+)/, '"events":$1.0')],
    ['an escaped character', (line) => line.replace('operator', '\\u006fperator')],
    ['__proto__', (line) => line.replace('"complete"', '"__proto__":{},"complete"')],
  ];
  it.each(forms)('is refused if its trailer has %s', async (_, change) => {
    const file = await exported(ledgerLog, requestIn('ndjson'));
    const other = withTrailer(file, change);
    expect(readFileSync(other, 'utf8')).not.toBe(readFileSync(file, 'utf8'));
    const refused = { code: 'file_unreadable' };
    await expect(checkExport(ledgerLog, other)).rejects.toMatchObject(refused);
    await expect(checkOffline(other)).rejects.toMatchObject(refused);
  });

  it('that was shortened, with a new trailer, shows that later events match', async () => {
    const file = await exported(ledgerLog, requestIn('ndjson', { filter: { types: ['TokenCreated'] } }));
    const all = readFileSync(file, 'utf8').split('\n').slice(0, -2);
    const kept = all.slice(0, -3);
    const last = JSON.parse(kept.at(-1) ?? '') as { position: string };
    const sha256 = createHash('sha256')
      .update(`${kept.join('\n')}\n`)
      .digest('hex');
    const shortened = altered(file, (lines) => {
      const { trailer } = JSON.parse(lines.at(-1) ?? '') as { trailer: Trailer };
      const made = { ...trailer, up_to: last.position, events: kept.length, last_position: last.position };
      return [...kept, trailerLine({ ...made, sha256 })];
    });
    const { later = 0 } = await checkExport(ledgerLog, file);
    expect(await checkExport(ledgerLog, shortened)).toMatchObject({ later: later + 3 });
    expect((await checkOffline(shortened)).difference).toBeUndefined();
  });

  it('with a limit says that it is limited, and how many later events match', async () => {
    const checked = await checkExport(
      ledgerLog,
      await exported(ledgerLog, requestIn('ndjson', { limit: 2 })),
    );
    const count = (await eventsOf(ledgerLog.log.readAll())).length;
    expect(checked).toMatchObject({ trailer: { complete: false, limit: 2, events: 2 }, later: count - 2 });
    expect(checked.difference).toBeUndefined();
    const file = await exported(ledgerLog, requestIn('ndjson', { limit: 2 }));
    const claims = withTrailer(file, (line) => line.replace('"complete":false', '"complete":true'));
    expect((await checkExport(ledgerLog, claims)).difference?.what).toBe(
      'the trailer was altered: complete.',
    );
  });

  describe('without its log', () => {
    const tampered: readonly (readonly [string, (lines: string[]) => string[], RegExp])[] = [
      ['a changed byte', (lines) => lines.with(1, (lines[1] ?? '').replace('tok_', 'TOK_')), /SHA-256/],
      ['a line that is no event', (lines) => lines.with(1, '{}'), /not an event/],
      ['an event missing at the end', (lines) => lines.toSpliced(-2, 1), /SHA-256/],
      ['a repeated event', (lines) => lines.toSpliced(1, 0, lines[1] ?? ''), /comes after/],
      ['events in another order', (lines) => [lines[1] ?? '', lines[0] ?? '', ...lines.slice(2)], /./],
    ];
    it.each(tampered)('shows %s', async (_, change, what) => {
      const file = await exported(ledgerLog, requestIn('ndjson'));
      expect((await checkOffline(file)).difference).toBeUndefined();
      expect((await checkOffline(altered(file, change))).difference?.what).toMatch(what);
    });

    it('shows a gap in the revisions, even with a new digest', async () => {
      const file = await exported(ledgerLog, requestIn('ndjson'));
      const cut = altered(file, (lines) => {
        const repeated = lines.findLastIndex(
          (line, at) => at < lines.length - 2 && /"revision":1,/.test(line),
        );
        const kept = lines.toSpliced(repeated, 1).slice(0, -1);
        const { trailer } = JSON.parse(lines.at(-1) ?? '') as { trailer: Trailer };
        const sha256 = createHash('sha256')
          .update(`${kept.join('\n')}\n`)
          .digest('hex');
        return [...kept, trailerLine({ ...trailer, events: kept.length, sha256 })];
      });
      expect((await checkOffline(cut)).difference?.what).toMatch(
        /^revision 1 of .* is missing before revision 2\.$/,
      );
    });

    it.each(['', 'tenant-ledger-'])('is unaltered with the prefix "%s"', async (prefix) => {
      const id = randomUUID();
      const streams = streamNames(prefix);
      const events = [
        { stream: streams.activity(id), revision: 0, position: 'activity:0' },
        { stream: streams.tenant(id), revision: 4, position: 'tenant:4' },
        { stream: streams.tenant(id), revision: 5, position: 'tenant:5' },
      ];
      const lines = events.map((event) => `${JSON.stringify(event)}\n`).join('');
      const trail = trailerBuilder();
      trail.add(
        lines,
        events.map(({ position }) => position),
      );
      const conditions = { view: 'tenant', format: 'ndjson', filter: { tenants: [id] } } as const;
      const extent = { log: randomUUID(), up_to: { tenant: 5, activity: 0 } };
      const file = join(freshFolder(), 'export');
      const trailer = trail.trailer({ ...conditions, after: 'tenant:3' }, extent);
      writeFileSync(file, `${lines}${trailerLine(trailer)}\n`);
      expect((await checkOffline(file)).difference).toBeUndefined();
    });

    it('is known to lack gaps only if its conditions select whole streams', async () => {
      const whole = await exported(ledgerLog, requestIn('ndjson'));
      const some = await exported(ledgerLog, requestIn('ndjson', { filter: { types: ['TokenCreated'] } }));
      const csv = await exported(ledgerLog, requestIn('csv'));
      expect(await checkOffline(whole)).toMatchObject({ isGapless: true });
      for (const file of [some, csv]) {
        const checked = await checkOffline(file);
        expect([checked.isGapless, checked.difference]).toEqual([false, undefined]);
      }
    });
  });
});
