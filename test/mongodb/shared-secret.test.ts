import { sharedSecret } from '../../src/mongodb/database';
import { connectMongodb } from '../support/mongodb-under-test';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { refusedWith } from '../support/waiting';

describeMongodb('the secret that instances share', () => {
  it('is created once, however many start at the same time, and is long', async () => {
    const url = mongodbUrl();
    const connections = await Promise.all(Array.from({ length: 8 }, () => connectMongodb(url)));
    const secrets = await Promise.all(connections.map(({ db }) => sharedSecret(db)));
    expect(new Set(secrets).size).toBe(1);
    expect(secrets[0]!.length).toBeGreaterThanOrEqual(32);
    const { db } = await connectMongodb(url);
    expect(await sharedSecret(db)).toBe(secrets[0]);
    expect(await sharedSecret((await connectMongodb()).db)).not.toBe(secrets[0]);
  });

  it.each([{ secret: '' }, { secret: 'x'.repeat(31) }, { secret: 32 }, {}])(
    'is refused if it is damaged: %j',
    async (damaged) => {
      const { db } = await connectMongodb();
      await db.collection<{ _id: string }>('secrets').insertOne({ _id: 'portal', ...damaged });
      expect(await refusedWith(sharedSecret(db))).toBe('read_models_unavailable');
    },
  );
});
