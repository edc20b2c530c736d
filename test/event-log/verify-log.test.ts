import { DatabaseSync } from '@photostructure/sqlite';
import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { encode } from '../../src/event-log/codec';
import { eventsDigest } from '../../src/event-log/events-digest';
import { streamNames, type LedgerLog } from '../../src/event-log/streams';
import { verifyLog, type VerifiedLog } from '../../src/event-log/verify-log';
import { fillBusyLog } from '../support/busy-log';
import { closeAfterwards } from '../support/closing';
import { anEvent, eventsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { sampleOf } from '../support/samples';
import { openSqliteLog } from '../support/sqlite-logs';

type Place = LedgerLog & { readonly file: InstanceType<typeof DatabaseSync> };

const open = async (): Promise<Place> => {
  const [folder, streams] = [freshFolder(), streamNames()];
  const log = await openSqliteLog(folder, streams);
  const file = new DatabaseSync(join(folder, 'events.db'));
  closeAfterwards(() => file.close());
  return { log, streams, file };
};

const verify = (ledgerLog: LedgerLog): Promise<VerifiedLog> => verifyLog(ledgerLog, () => undefined);

const aFact = () => {
  const { type, data, metadata } = sampleOf('TokenCreated');
  return anEvent(data, { type, metadata });
};

/** A stream of facts, interleaved with those of other tenants. */
const filled = async (facts: number) => {
  const place = await open();
  await fillBusyLog(place, 60, 20);
  const tenantId = randomUUID();
  const stream = place.streams.activity(tenantId);
  await place.log.append(stream, Array.from({ length: facts }, aFact), 'no_stream');
  await fillBusyLog(place, 30, 10);
  return { ...place, tenantId, stream };
};

describe('verification of a log', () => {
  it('finds nothing in a sound one, and describes it', async () => {
    const { log, streams, file } = await filled(80);
    await log.append('somebody-elses', someEvents(3), 'no_stream');
    const { findings, ...rest } = await verify({ log, streams });
    expect(findings).toEqual([]);
    // The digest is computed here from the file alone.
    const rows = file
      .prepare(`SELECT * FROM events WHERE stream <> 'somebody-elses' ORDER BY position`)
      .all() as Record<string, string | number>[];
    const hash = createHash('sha256');
    for (const { stream, revision, id, type, data, metadata, recorded_at } of rows)
      for (const text of [
        JSON.stringify(stream),
        revision,
        JSON.stringify(id),
        JSON.stringify(type),
        data,
        metadata,
        new Date(recorded_at as number).toISOString(),
      ])
        hash.update(`${text}\n`);
    expect(rest).toEqual({
      identity: await log.identity(),
      events: 170,
      streams: 31,
      foreign: 3,
      lastPosition: '0000000000000170',
      digest: hash.digest('hex'),
      found: 0,
      setAside: 0,
    });
  });

  it('reports nothing about an empty one', async () => {
    expect(await verify(await open())).toMatchObject({
      events: 0,
      lastPosition: undefined,
      found: 0,
      digest: createHash('sha256').digest('hex'),
    });
  });

  it('tells bytes apart that are no text', () => {
    const digestOfBytes = (...bytes: readonly number[]): string => {
      const digest = eventsDigest();
      const place = { id: '', stream: '', revision: 0, position: '', recordedAt: '' };
      digest.add({ ...anEvent(), ...place, data: Buffer.from(bytes) });
      return digest.value();
    };
    expect(digestOfBytes(0xff)).not.toBe(digestOfBytes(0xfe));
  });

  it('reports a gap', async () => {
    const { stream, file, ...ledgerLog } = await filled(80);
    file.exec(`DELETE FROM events WHERE stream = '${stream}' AND revision IN (60, 70, 71)`);
    const { findings } = await verify(ledgerLog);
    expect(findings).toMatchObject([
      { kind: 'gap', stream, revision: 61, detail: expect.stringContaining(`${stream} lacks revision 60 `) },
      { kind: 'gap', stream, revision: 72, detail: expect.stringContaining('lacks revisions 70 to 71 ') },
    ]);
  });

  it('reports events that are out of order', async () => {
    const { stream, file, ...ledgerLog } = await filled(10);
    const move = (from: number, to: number): void =>
      file.exec(`UPDATE events SET revision = ${to} WHERE stream = '${stream}' AND revision = ${from}`);
    move(3, 99);
    move(4, 3);
    move(99, 4);
    const { findings } = await verify(ledgerLog);
    expect(findings.map(({ kind, revision }) => [kind, revision])).toEqual([
      ['gap', 4],
      ['gap', 3],
      ['gap', 5],
    ]);
    const backwards: LedgerLog = {
      ...ledgerLog,
      log: {
        ...ledgerLog.log,
        readAll: async function* (from) {
          for await (const batch of ledgerLog.log.readAll(from)) yield batch.toReversed();
        },
      },
    };
    expect((await verify(backwards)).findings[1]).toMatchObject({ kind: 'order' });
  });

  it('reports events that cannot be read, including those of the operator', async () => {
    const { stream, ...ledgerLog } = await filled(3);
    await ledgerLog.log.append(stream, [anEvent({}, { type: 'TokenCreated' }), anEvent()], 2);
    await ledgerLog.log.append(ledgerLog.streams.operator(), [anEvent()], 'no_stream');
    const { findings } = await verify(ledgerLog);
    expect(findings).toMatchObject([
      { kind: 'bad_event', stream, revision: 3, detail: expect.stringContaining('does not fit version 1') },
      { kind: 'bad_event', stream, revision: 4, detail: expect.stringContaining('is unknown') },
      { kind: 'bad_event', stream: 'operator', revision: 0 },
    ]);
  });

  it('lists the first hundred findings, and counts all', async () => {
    const { stream, ...ledgerLog } = await filled(1);
    await ledgerLog.log.append(stream, someEvents(101), 0);
    const { findings, found } = await verify(ledgerLog);
    expect([findings.length, found]).toEqual([100, 101]);
  });

  it('counts apart what the operator has set aside, and nothing else', async () => {
    const { tenantId, stream, file, ...ledgerLog } = await filled(20);
    const { log, streams } = ledgerLog;
    const [bad, otherBad] = [anEvent(), anEvent()];
    await log.append(stream, [bad, otherBad], 19);
    file.exec(`DELETE FROM events WHERE stream = '${stream}' AND revision IN (5, 10)`);
    const after = (await eventsOf(log.readStream(stream, 5)))[0]!.id;
    const before = await verify(ledgerLog);
    expect([before.found, before.setAside]).toEqual([4, 0]);
    const aside = (type: 'EventSetAside' | 'GapAccepted', eventId: string, eventTenantId = tenantId) =>
      encode(
        { type, data: { eventId, eventTenantId, reason: 'Known.' } },
        { at: '2026-01-01T00:00:00.000Z' },
      );
    const operator = [
      aside('EventSetAside', bad.id),
      aside('GapAccepted', after),
      aside('GapAccepted', otherBad.id),
      aside('EventSetAside', otherBad.id, randomUUID()),
    ];
    await log.append(streams.operator(), operator, 'no_stream');
    const { findings, found, setAside } = await verify(ledgerLog);
    expect(findings).toMatchObject([
      { kind: 'gap', revision: 11 },
      { kind: 'bad_event', revision: 21 },
    ]);
    expect({ found, setAside }).toEqual({ found: 2, setAside: 2 });
  });
});
