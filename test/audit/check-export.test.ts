import * as fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkExport } from '../../src/audit/check-export';
import { eventFormats, eventLines, type EventFormat } from '../../src/audit/event-lines';
import { exportEvents, trailerBuilder, type ExportRequest } from '../../src/audit/export';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { fillBusyLog } from '../support/busy-log';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/log-under-test';
import { seed, seeded } from '../support/property';

const EVENTS = 120;

const exported = async (ledgerLog: LedgerLog, request: ExportRequest): Promise<string> => {
  const file = join(freshFolder(), 'export');
  const trail = trailerBuilder();
  const lines = eventLines(request.format, ledgerLog.streams);
  let text = '';
  for await (const chunk of exportEvents(ledgerLog, request, { lines, onUnreadable: () => undefined }, trail))
    text += chunk.bytes.toString();
  const trailer = trail.trailer(request, await ledgerLog.log.identity());
  writeFileSync(file, `${text}${JSON.stringify({ trailer })}\n`);
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
    up_to: head,
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
});
