import type { EventStoreDBClient } from '@eventstore/db-client';
import type { Connection } from '../../src/event-log/eventstoredb/connection';
import { resuming } from '../../src/event-log/eventstoredb/stream-reader';
import type { LoggedEvent } from '../../src/event-log/event-log';

const eventAt = (revision: number) => ({ revision }) as LoggedEvent;

describe('a read cut off by our own side', () => {
  /** A client that is abandoned ends its reads as if they were complete. */
  const cut = (isClosed: boolean) => {
    const clients = [{}, {}] as EventStoreDBClient[];
    let now = 0;
    const connection = {
      client: () => clients[now],
      isShut: (client: EventStoreDBClient) => client === clients[0] && now > 0,
      isClosed: () => isClosed && now > 0,
      renew: () => undefined,
    } as unknown as Connection;
    const open = async function* (client: EventStoreDBClient, last: LoggedEvent | undefined) {
      const from = (last?.revision ?? -1) + 1;
      yield [eventAt(from), eventAt(from + 1)];
      if (client === clients[0]) now = 1;
    };
    return resuming(connection, open);
  };

  it('continues with the next client, and yields each event once', async () => {
    const revisions: number[] = [];
    for await (const batch of cut(false)) revisions.push(...batch.map(({ revision }) => revision));
    expect(revisions).toEqual([0, 1, 2, 3]);
  });

  it('fails if the log was closed, since it is incomplete', async () => {
    const read = async () => {
      for await (const batch of cut(true)) expect(batch).toHaveLength(2);
    };
    await expect(read()).rejects.toMatchObject({ code: 'log_unavailable' });
  });
});
