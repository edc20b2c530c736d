import { randomUUID } from 'node:crypto';
import { MessageChannel } from 'node:worker_threads';
import { eventStream, type StreamDependencies } from '../../src/audit/event-stream';
import { readingWith, type EventChunks } from '../../src/audit/reading';
import { readingTasks } from '../../src/audit/reading-tasks';
import { streamForms } from '../../src/audit/event-texts';
import { logFault, type EventLog } from '../../src/event-log/event-log';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { anEvent, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';
import { until } from '../support/waiting';

/** The thread that reads is this one; the protocol is the same. */
describe('a stream of events', () => {
  let ledgerLog: LedgerLog;
  let tenantId: string;
  let stream: string;
  let reads = 0;
  const opened: EventChunks[] = [];
  beforeAll(async () => (ledgerLog = await openLogIn(freshFolder())));
  beforeEach(() => {
    tenantId = randomUUID();
    stream = ledgerLog.streams.activity(tenantId);
    reads = 0;
  });
  afterEach(() => opened.splice(0).forEach((chunks) => chunks.close()));
  afterAll(() => ledgerLog.log.close());

  const counted = (around: Partial<EventLog>): LedgerLog => {
    const { log, streams } = ledgerLog;
    const read = around.readTenant ?? log.readTenant;
    const readTenant: EventLog['readTenant'] = (...args) => {
      reads += 1;
      return read(...args);
    };
    return { streams, log: { ...log, ...around, readTenant } };
  };
  const readingOf = (around: Partial<EventLog> = {}) => {
    const work = readingTasks(Promise.resolve(counted(around)));
    return readingWith((task) => {
      const { port1, port2 } = new MessageChannel();
      void work(task, port2);
      return port1;
    });
  };
  const chunksOf = (follow: boolean, around?: Partial<EventLog>): EventChunks => {
    const filter = { tenants: [tenantId] };
    const form = 'ndjson' as const;
    const chunks = readingOf(around).stream({
      tenantId,
      filter,
      after: undefined,
      limit: undefined,
      follow,
      form,
    });
    opened.push(chunks);
    return chunks;
  };
  const never = new AbortController().signal;
  const partsOf = (chunks: EventChunks, more: Partial<StreamDependencies> = {}): StreamDependencies => ({
    chunks,
    form: streamForms.ndjson,
    after: undefined,
    gaveOut: () => undefined,
    mayRead: async () => undefined,
    gone: never,
    stopping: never,
    stalled: never,
    ...more,
  });
  const textOf = async (texts: AsyncGenerator<Uint8Array | string>): Promise<string> => {
    let text = '';
    for await (const part of texts) text += Buffer.from(part).toString();
    return text;
  };
  const lastLineOf = (text: string): unknown => JSON.parse(text.trimEnd().split('\n').at(-1) ?? '');

  it('that follows reads the log when there is something new, and not while there is nothing', async () => {
    let checks = 0;
    await ledgerLog.log.append(stream, [anEvent()], 'no_stream');
    const gone = new AbortController();
    const mayRead = async (): Promise<undefined> => void (checks += 1);
    const texts = eventStream(partsOf(chunksOf(true), { mayRead, gone: gone.signal }));
    const next = async (): Promise<string> => Buffer.from((await texts.next()).value ?? '').toString();
    expect(await next()).toContain('"id"');
    const second = next();
    await until(() => checks >= 3);
    expect(reads).toBeLessThanOrEqual(2);
    const event = anEvent();
    await ledgerLog.log.append(stream, [event], 0);
    expect(await second).toContain(event.id);
    gone.abort();
    await texts.return(undefined);
  });

  it.each(['gone', 'stopping'] as const)(
    'that follows ends soon when its signal %s is aborted',
    async (name) => {
      const controllers = { gone: new AbortController(), stopping: new AbortController() };
      const [gone, stopping] = [controllers.gone.signal, controllers.stopping.signal];
      await ledgerLog.log.append(stream, [anEvent()], 'no_stream');
      const texts = eventStream(partsOf(chunksOf(true), { gone, stopping }));
      await texts.next();
      const rest = textOf(texts);
      const startedAt = performance.now();
      controllers[name].abort();
      expect(await rest).toContain(name === 'stopping' ? 'shutting_down' : '');
      expect(performance.now() - startedAt).toBeLessThan(1_500);
    },
  );

  it('counts the events that it sent at its end, and not its signs of life', async () => {
    const now = performance.now.bind(performance);
    let ahead = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + ahead);
    await ledgerLog.log.append(stream, someEvents(2), 'no_stream');
    const counts: number[] = [];
    const texts = eventStream(partsOf(chunksOf(true), { gaveOut: (count) => void counts.push(count) }));
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
    const chunks = chunksOf(false, { readTenant });
    await until(() => batches > 0);
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(batches).toBeLessThanOrEqual(2);
    let gaveOut = 0;
    const text = await textOf(eventStream(partsOf(chunks, { gaveOut: (count) => (gaveOut += count) })));
    expect(gaveOut).toBe(events.length);
    expect(lastLineOf(text)).toMatchObject({ trailer: { events: events.length } });
  });

  const failures: readonly (readonly [string, Error, string])[] = [
    ['cannot be read', logFault('log_unavailable', 'It is away.'), 'log_unavailable'],
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
      const texts = eventStream(partsOf(chunksOf(false, { readTenant })));
      const sent: string[] = [];
      const reading = (async () => {
        for await (const part of texts) sent.push(Buffer.from(part).toString());
      })();
      // What nobody expected is also thrown, so that it is logged.
      if (reason === 'internal_error') await expect(reading).rejects.toThrow('disk I/O error');
      await reading.catch(() => undefined);
      expect(sent.join('').match(/"id"/g)).toHaveLength(3);
      expect(lastLineOf(sent.join(''))).toEqual({ end: { reason, position: 'activity:2' } });
    },
  );

  it('whose thread dies ends with a reason', async () => {
    const { port1, port2 } = new MessageChannel();
    const chunks = readingWith(() => port1).stream({
      tenantId,
      filter: {},
      after: undefined,
      limit: undefined,
      follow: true,
      form: 'ndjson',
    });
    const texts = textOf(eventStream(partsOf(chunks, { after: 'tenant:7' })));
    port2.close();
    expect(lastLineOf(await texts)).toEqual({ end: { reason: 'log_unavailable', position: 'tenant:7' } });
  });
});
