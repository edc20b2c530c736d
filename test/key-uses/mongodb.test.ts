import { randomUUID } from 'node:crypto';
import type { Db } from 'mongodb';
import { mongoKeyUses } from '../../src/key-uses/mongo-key-uses';
import { describeMongodb } from '../support/mongodb/databases';
import { connectMongodb } from '../support/mongodb-under-test';
import { refusedWith } from '../support/waiting';
import { keyUsesContract, request, time } from './contract';

describeMongodb('the port of key uses', () =>
  keyUsesContract('MongoDB', async () => {
    const connection = await connectMongodb();
    return (options) => mongoKeyUses(connection, options);
  }),
);

describeMongodb('uses of keys in MongoDB', () => {
  it('that cannot be written are ignored; a failed read is reported', async () => {
    const connection = await connectMongodb();
    const uses = mongoKeyUses(connection);
    await connection.close();
    uses.used(request(randomUUID(), 'a', time(1)));
    expect(await refusedWith(uses.lastUses(randomUUID()))).toBe('read_models_unavailable');
    await uses.close();
  });

  it('wait neither for a write nor for a read that the driver leaves without an answer', async () => {
    const connection = await connectMongodb();
    const never = new Promise<never>(() => undefined);
    const silent = { bulkWrite: () => never, find: () => ({ toArray: () => never }) };
    const db = { collection: () => silent } as unknown as Db;
    const uses = mongoKeyUses({ ...connection, db });
    const reading = refusedWith(uses.lastUses(randomUUID()));
    uses.used(request(randomUUID(), 'a', time(1)));
    const closing = uses.close();
    expect(await reading).toBe('read_models_unavailable');
    await closing;
  }, 20_000);
});
