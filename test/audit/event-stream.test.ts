import { randomUUID } from 'node:crypto';
import { eventStream, type StreamForm } from '../../src/audit/event-stream';
import { liveTail } from '../../src/audit/live-tail';
import type { EventLog } from '../../src/event-log/event-log';
import type { Side } from '../../src/event-log/own-events';
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

describe('a stream that follows', () => {
  let side: Side;
  beforeAll(async () => (side = await openLogIn(freshFolder())));
  afterAll(() => side.log.close());

  it('reads the log when there is something new, and not while there is nothing', async () => {
    let reads = 0;
    let checks = 0;
    const readTenant: EventLog['readTenant'] = (...parts) => {
      reads += 1;
      return side.log.readTenant(...parts);
    };
    const tenantId = randomUUID();
    const stream = side.streams.activity(tenantId);
    await side.log.append(stream, [anEvent()], 'no_stream');
    const [gone, never] = [new AbortController(), new AbortController().signal];
    const texts = eventStream(
      { tenantId, filter: { tenants: [tenantId] }, after: undefined, limit: Infinity, follow: true },
      {
        side: { ...side, log: { ...side.log, readTenant } },
        tail: liveTail(side.log, side.streams),
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
    await side.log.append(stream, [event], 0);
    expect((await second).value).toBe(`{"id":"${event.id}"}\n`);
    gone.abort();
    await texts.return(undefined);
  });
});
