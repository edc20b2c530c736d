import { databaseUrl } from '../support/mongodb/database-url';
import { describeMongodb } from '../support/mongodb/databases';
import { startSetOfThree, type SetOfThree } from '../support/mongodb/set-of-three';
import { connectMongodb, readModelsOn } from '../support/mongodb-under-test';
import { until } from '../support/waiting';
import { at, collections, id, LOG, note, ONE } from '../read-models/contract/harness';
import { createAndOpen } from '../support/generations';

type Member = SetOfThree['members'][number];

/** Stops or resumes replication to a secondary. Frozen by a signal, it would still find the last writes in its socket. */
const replication = async ({ port }: Member, mode: 'stop' | 'resume'): Promise<void> => {
  const { db, close } = await connectMongodb(`mongodb://127.0.0.1:${port}/admin?directConnection=true`);
  const failPoint = 'stopReplProducer';
  const command = { configureFailPoint: failPoint, mode: mode === 'stop' ? 'alwaysOn' : 'off' };
  const { count } = (await db.command(command)) as { count: number };
  if (mode === 'stop')
    await db.command({ waitForFailPoint: failPoint, timesEntered: count + 1, maxTimeMS: 30_000 });
  await close();
};

describeMongodb('a commit that no majority of a replica set of three has', () => {
  let set: SetOfThree;
  beforeAll(async () => {
    set = await startSetOfThree();
  }, 120_000);
  afterAll(() => set.close());

  const openGeneration = async (options: string) => {
    const connection = await connectMongodb(`${databaseUrl(set.url, 'ledger')}${options}`);
    const readModels = await readModelsOn(connection, { finishAfterMs: 0 });
    return { connection, generation: await createAndOpen(readModels, id('notes'), collections, LOG) };
  };

  it('is not completed by another process, and rolled back with the primary', async () => {
    const { connection, generation } = await openGeneration('&retryWrites=false');
    const { generation: other } = await openGeneration('');
    const write = (by: string) => [note(ONE, 'a', { by })];
    const { primary } = (await connection.db.admin().command({ hello: 1 })) as { primary: string };
    const isPrimary = ({ port }: Member): boolean => primary.endsWith(`:${port}`);
    const secondaries = set.members.filter((member) => !isPrimary(member));

    await Promise.all(secondaries.map((member) => replication(member, 'stop')));
    const undone = generation.commit(0, at(1), write('one')).catch((error: unknown) => error);
    const local = { readConcern: { level: 'local' } } as const;
    const controls = connection.db.collection<{ _id: string; n: number }>('read_models.controls', local);
    await until(async () => (await controls.findOne({ _id: 'notes_v1_one' }))?.n === 1);
    expect(await other.control()).toMatchObject({ n: 0 });
    expect(await other.load(write('one'))).toEqual([undefined]);

    process.kill(set.members.find(isPrimary)!.pid, 'SIGKILL');
    await Promise.all(secondaries.map((member) => replication(member, 'resume')));
    expect(await undone).toMatchObject({ code: 'read_models_unavailable' });
    await until(() => other.commit(0, at(2), write('other')).catch(() => false), 60_000, 'a new primary');
    expect(await other.control()).toMatchObject({ n: 1, to: at(2) });
    expect(await other.load(write('other'))).toEqual([{ by: 'other' }]);
  }, 120_000);
});
