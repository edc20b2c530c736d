import { PROGRESS, PROGRESS_KEY } from '../../projections/projector';
import { connectMongodb } from '../support/mongodb-under-test';
import { databaseUrl } from '../support/mongodb/database-url';
import { describeMongodb } from '../support/mongodb/databases';
import { replication } from '../support/mongodb/set-faults';
import { startSetOfThree, type SetOfThree } from '../support/mongodb/set-of-three';
import { succeeds, until } from '../support/waiting';
import { collectionName, idOf, type Stored } from '../../src/read-models/mongodb/layout';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import type { ReadModelSet } from '../../src/read-models/read-models';
import { beforeIn, COLLECTIONS, commitOf, LOG, note, ONE } from '../read-models/contract/storage';

type Member = SetOfThree['members'][number];

describeMongodb('a replica set of three whose primary is killed', () => {
  let set: SetOfThree;
  beforeAll(async () => {
    set = await startSetOfThree();
  }, 120_000);
  afterAll(() => set.close());

  const openProcess = async () => {
    const connection = await connectMongodb(databaseUrl(set.url, 'ledger'));
    return {
      connection,
      readModels: await mongodbReadModels(connection, { version: 'v1', collections: COLLECTIONS }),
    };
  };
  /** The commit writes a document that names its position, so that both must agree. */
  const advanceTo = async (to: number, into: ReadModelSet) => {
    const work = async () => [await commitOf(into, ONE, to, [note(ONE, 'a', { to })])];
    const outcomes = await into.advance(await beforeIn(into, ONE), work);
    return outcomes === 'superseded' ? outcomes : outcomes.get(ONE);
  };

  it('keeps an acknowledged commit, and has never shown one that no majority had', async () => {
    const [one, other] = [await openProcess(), await openProcess()];
    const built = await one.readModels.create(LOG);
    expect(await one.readModels.succeed(built, undefined)).toBe(true);
    const liveIn = async ({ readModels }: typeof one) => (await readModels.live())!;
    const seenBy = async (process: typeof one) => {
      const live = await liveIn(process);
      const document = await live.set.get(ONE, 'notes', 'a');
      const [progress] = await live.set.progress([ONE]);
      return { to: progress?.tenant ?? 0, document: document?.['to'] };
    };
    expect(await advanceTo(1, (await liveIn(one)).set)).toBe('done');
    expect(await seenBy(other)).toEqual({ to: 1, document: 1 });

    const { primary } = (await one.connection.db.admin().command({ hello: 1 })) as { primary: string };
    const isPrimary = ({ port }: Member): boolean => primary.endsWith(`:${port}`);
    const secondaries = set.members.filter((member) => !isPrimary(member));
    await Promise.all(secondaries.map((member) => replication(member, 'stop')));
    const unacknowledged = advanceTo(2, (await liveIn(one)).set).catch(() => 'failed' as const);
    const local = { readConcern: { level: 'local' } } as const;
    const name = collectionName(built.id, PROGRESS.name);
    const progress = one.connection.db.collection<Stored>(name, local);
    const isCommittedHere = async () =>
      (await progress.findOne({ _id: idOf(ONE, PROGRESS_KEY) }))?.doc['tenant'] === 2;
    await until(isCommittedHere);
    expect(await seenBy(other)).toEqual({ to: 1, document: 1 });

    process.kill(set.members.find(isPrimary)!.pid, 'SIGKILL');
    await Promise.all(secondaries.map((member) => replication(member, 'resume')));
    // It may have been repeated on the new primary.
    const outcome = await unacknowledged;
    await until(() => succeeds(seenBy(other)), 60_000, 'a new primary');
    const after = await seenBy(other);
    expect(after.document).toBe(after.to);
    expect(outcome === 'done' ? [2] : [1, 2]).toContain(after.to);
    const isDone = () =>
      advanceTo(3, built).then(
        (advanced) => advanced === 'done',
        () => false,
      );
    await until(isDone, 60_000, 'a commit');
    for (const process of [one, other]) expect(await seenBy(process)).toEqual({ to: 3, document: 3 });
  }, 180_000);
});
