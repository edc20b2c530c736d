import { randomUUID } from 'node:crypto';
import { eventSource } from '../../src/audit/event-source';
import { eventStream, streamForms, type StreamClient } from '../../src/audit/event-stream';
import type { EventLog } from '../../src/event-log/event-log';
import type { LedgerLog } from '../../src/event-log/streams';
import { fault } from '../../src/fault';
import { anEvent, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';
import { until } from '../support/waiting';

describe('a stream of events', () => {
  let ledgerLog: LedgerLog;
  let tenantId: string;
  let stream: string;
  beforeAll(async () => (ledgerLog = await openLogIn(freshFolder())));
  beforeEach(() => {
    tenantId = randomUUID();
    stream = ledgerLog.streams.activity(tenantId);
  });
  afterAll(() => ledgerLog.log.close());

  const never = new AbortController().signal;
  const textsOf = (
    follow: boolean,
    { stopping = never, ...reader }: Partial<StreamClient> & { readonly stopping?: AbortSignal } = {},
    around: Partial<EventLog> = {},
  ): AsyncGenerator<string> => {
    const { log, streams } = ledgerLog;
    return eventStream(
      {
        tenantId,
        filter: { tenants: [tenantId] },
        after: undefined,
        limit: undefined,
        follow,
        form: streamForms.ndjson,
      },
      eventSource({ streams, log: { ...log, ...around } }, stopping),
      { mayRead: async () => undefined, gaveOut: () => undefined, gone: never, ...reader },
    );
  };
  const textOf = async (texts: AsyncGenerator<string>): Promise<string> => {
    let text = '';
    for await (const part of texts) text += part;
    return text;
  };
  const lastLineOf = (text: string): unknown => JSON.parse(text.trimEnd().split('\n').at(-1) ?? '');

  it('that follows gives new events, and asks now and then whether it may go on', async () => {
    let checks = 0;
    await ledgerLog.log.append(stream, [anEvent()], 'no_stream');
    const gone = new AbortController();
    const mayRead = async (): Promise<undefined> => void (checks += 1);
    const texts = textsOf(true, { mayRead, gone: gone.signal });
    expect((await texts.next()).value).toContain('"id"');
    const second = texts.next();
    await until(() => checks >= 3);
    const event = anEvent();
    await ledgerLog.log.append(stream, [event], 0);
    expect((await second).value).toContain(event.id);
    gone.abort();
    await texts.return(undefined);
  });

  it.each(['gone', 'stopping'] as const)('that follows ends when its signal %s is aborted', async (name) => {
    const controllers = { gone: new AbortController(), stopping: new AbortController() };
    const [gone, stopping] = [controllers.gone.signal, controllers.stopping.signal];
    await ledgerLog.log.append(stream, [anEvent()], 'no_stream');
    const [waiting, sending] = [textsOf(true, { gone, stopping }), textsOf(true, { gone, stopping })];
    for (const texts of [waiting, sending]) await texts.next();
    const rest = textOf(waiting);
    controllers[name].abort();
    const end = '{"end":{"reason":"shutting_down","position":"activity:0"}}\n';
    for (const text of [await rest, await textOf(sending)]) expect(text).toBe(name === 'stopping' ? end : '');
  });

  it('counts the events that it sent at its end, and not its signs of life', async () => {
    const now = performance.now.bind(performance);
    let ahead = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + ahead);
    await ledgerLog.log.append(stream, someEvents(2), 'no_stream');
    const counts: number[] = [];
    const texts = textsOf(true, { gaveOut: (count) => void counts.push(count) });
    await texts.next();
    ahead = 20_000;
    expect((await texts.next()).value).toBe('\n');
    expect(counts).toEqual([]);
    await texts.return(undefined);
    expect(counts).toEqual([2]);
    clock.mockRestore();
  });

  it('is read only as far as its reader has come', async () => {
    const events = Array.from({ length: 4 }, () => someEvents(1_000)).flat();
    let revision = -1;
    for (let from = 0; from < events.length; from += 1_000)
      ({ revision } = await ledgerLog.log.append(
        stream,
        events.slice(from, from + 1_000),
        revision < 0 ? 'no_stream' : revision,
      ));
    let batches = 0;
    const readTenant: EventLog['readTenant'] = async function* (...args) {
      for await (const batch of ledgerLog.log.readTenant(...args)) {
        batches += 1;
        yield batch;
      }
    };
    let gaveOut = 0;
    const texts = textsOf(false, { gaveOut: (count) => (gaveOut += count) }, { readTenant });
    await texts.next();
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(batches).toBeLessThanOrEqual(2);
    const text = await textOf(texts);
    expect(gaveOut).toBe(events.length);
    expect(lastLineOf(text)).toMatchObject({ trailer: { events: events.length } });
  });

  const failures: readonly (readonly [string, Error, string])[] = [
    ['cannot be read', fault('log_unavailable', 'It is away.'), 'log_unavailable'],
    ['fails unexpectedly', new Error('disk I/O error'), 'internal_error'],
  ];
  it.each(failures)(
    'from a log that %s ends with a reason, and where to resume',
    async (_, error, reason) => {
      await ledgerLog.log.append(stream, someEvents(3), 'no_stream');
      const readTenant: EventLog['readTenant'] = async function* (...args) {
        yield* ledgerLog.log.readTenant(...args);
        throw error;
      };
      const texts = textsOf(false, {}, { readTenant });
      const sent: string[] = [];
      const reading = (async () => {
        for await (const part of texts) sent.push(part);
      })();
      // What nobody expected is also thrown, so that it is logged.
      if (reason === 'internal_error') await expect(reading).rejects.toThrow('disk I/O error');
      await reading.catch(() => undefined);
      expect(sent.join('').match(/"id"/g)).toHaveLength(3);
      expect(lastLineOf(sent.join(''))).toEqual({ end: { reason, position: 'activity:2' } });
    },
  );
});
