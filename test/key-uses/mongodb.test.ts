import { randomUUID } from 'node:crypto';
import { mongoKeyUses } from '../../src/key-uses/mongo-key-uses';
import { mongoUnderTest, type MongoUnderTest } from '../support/mongo-under-test';
import { refusedWith } from '../support/waiting';
import { keyUsesContract, time } from './contract';

let server: MongoUnderTest;
beforeAll(async () => {
  server = await mongoUnderTest();
});
afterAll(() => server.close());

keyUsesContract('MongoDB', async () => {
  const { db, unavailable } = await server.connect();
  return (options) => mongoKeyUses(db, unavailable, options);
});

describe('last uses of keys in MongoDB', () => {
  it('that cannot be written disturb nobody; that cannot be read are reported', async () => {
    const { db, unavailable, close } = await server.connect();
    const uses = mongoKeyUses(db, unavailable);
    await close();
    uses.used(randomUUID(), 'a', time(1));
    expect(await refusedWith(uses.lastUses(randomUUID()))).toBe('read_models_unavailable');
    await uses.close();
  });
});
