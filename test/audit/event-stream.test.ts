import { randomUUID } from 'node:crypto';
import { eventStream, type StreamForm } from '../../src/audit/event-stream';
import { liveTail } from '../../src/audit/live-tail';
import type { EventLog } from '../../src/event-log/event-log';
import type { LedgerLog } from '../../src/event-log/ledger-log';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/log-under-test';
import { until } from '../support/waiting';

const form: StreamForm = {
  event: (_, json) => `${json}\n`,
  heartbeat: () => '\n',
  trailer: (json) => `${json}\n`,
  end: (json) => `${json}\n`,
};

describe('a following stream', () => {
  let ledgerLog: LedgerLog;
  beforeAll(async () => (ledgerLog = await openLogIn(freshFolder())));
  afterAll(() => ledgerLog.log.close());

  it('reads the log when there is something new, and not while there is nothing', async () => {
    let reads = 0;
    let checks = 0;
    const readTenant: EventLog['readTenant'] = (...parts) => {
      reads += 1;
      return ledgerLog.log.readTenant(...parts);
    };
    const tenantId = randomUUID();
    const stream = ledgerLog.streams.activity(tenantId);
    await ledgerLog.log.append(stream, [anEvent()], 'no_stream');
    const [gone, never] = [new AbortController(), new AbortController().signal];
    const texts = eventStream(
      { tenantId, filter: { tenants: [tenantId] }, after: undefined, limit: Infinity, follow: true },
      {
        ledgerLog: { ...ledgerLog, log: { ...ledgerLog.log, readTenant } },
        tail: liveTail(ledgerLog.log, ledgerLog.streams),
        form,
        cursorOf: (position) => position,
        jsonOf: ({ id }) => JSON.stringify({ id }),
        mayRead: async () => void (checks += 1),
        gone: gone.signal,
        stopping: never,
        stalled: never,
      },
    );
    expect((await texts.next()).value).toContain('"id"');
    const second = texts.next();
    await until(() => checks >= 3);
    expect(reads).toBeLessThanOrEqual(2);
    const event = anEvent();
    await ledgerLog.log.append(stream, [event], 0);
    expect((await second).value).toBe(`{"id":"${event.id}"}\n`);
    gone.abort();
    await texts.return(undefined);
  });
});
