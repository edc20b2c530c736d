import { fork } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { monotonicMs, pause } from '../../src/async/clock';
import { mongodbReadModels } from '../../src/read-models/mongodb/mongodb-read-models';
import { TIMES } from '../../src/times';
import { COLLECTIONS, LOG, ONE } from '../read-models/contract/storage';
import { add, countIn } from '../read-models/counts';
import { closeAfterwards } from '../support/closing';
import type { Gate } from '../support/gate';
import { connectMongodb, mongodbBehindProxy, type DisturbedMongodb } from '../support/mongodb-under-test';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { firstSet, openAt } from '../support/mongodb/sets';
import { refusedWith, until } from '../support/waiting';

/** A process of its own, which counts and then does nothing. */
const PROCESS = join(__dirname, '..', 'read-models', 'mongodb-process.js');

describeMongodb('read models in MongoDB that others hold, or that do not answer', () => {
  /** Begins to count for these tenants in another process, and kills it in the middle of the transaction. */
  const dieInTransaction = async (
    { url, faults }: Pick<DisturbedMongodb, 'url' | 'faults'>,
    ...tenantIds: readonly string[]
  ): Promise<void> => {
    faults.add({ command: 'insert', collection: /^notes_/, action: { type: 'hang' } });
    const killed = fork(PROCESS, [url, ...tenantIds], { stdio: 'ignore' });
    await until(() => faults.affected === 1);
    killed.kill('SIGKILL');
    await once(killed, 'exit');
  };
  const tenantIds = Array.from({ length: 32 }, (_, i) => `tenant ${String(i).padStart(2, '0')}`);

  it.each([
    ['one', [13]],
    ['those', tenantIds.flatMap((_, i) => (i % 2 === 0 ? [] : i))],
  ])('are committed for all tenants of a group but %s that a dead transaction holds', async (_, held) => {
    const mongodb = await mongodbBehindProxy();
    const set = await firstSet(await openAt(mongodb.url));
    await add(set, tenantIds);
    await dieInTransaction(mongodb, ...held.map((i) => tenantIds[i]!));
    const expected = tenantIds.map((__, i) => (held.includes(i) ? 'overtaken' : 'done'));
    for (let round = 2; round < 5; round += 1) {
      const began = monotonicMs();
      mongodb.roundTrips.reset();
      expect(await add(set, tenantIds)).toEqual(expected);
      expect(monotonicMs() - began).toBeLessThan(2_000);
      // Each tenant is tried alone, once.
      expect(mongodb.roundTrips.count({ collection: /^progress_/ })).toBeLessThan(2 * tenantIds.length);
      expect(await Promise.all([0, 13, 30].map((i) => countIn(set, tenantIds[i])))).toEqual([
        round,
        1,
        round,
      ]);
    }
  });

  it('are held by a process that was killed in a transaction until others have met that for some time', async () => {
    const mongodb = await mongodbBehindProxy();
    TIMES.conflictMs = 1_500;
    closeAfterwards(() => (TIMES.conflictMs = 5_000));
    const readModels = await openAt(mongodb.url);
    const set = await firstSet(readModels);
    await dieInTransaction(mongodb, ONE);
    const began = monotonicMs();
    expect(await add(set)).toEqual(['overtaken']);
    await until(async () => (await add(set))[0] === 'done', 10_000);
    expect(monotonicMs() - began).toBeGreaterThan(1_000);
    expect(await countIn(set)).toBe(1);
  });

  it.each([0, 17])('are switched from although a dead transaction holds gate %i', async (number) => {
    TIMES.conflictMs = 1_500;
    closeAfterwards(() => (TIMES.conflictMs = 5_000));
    const connection = await connectMongodb();
    const readModels = await mongodbReadModels(connection, { version: 'v1', collections: COLLECTIONS });
    closeAfterwards(readModels.close);
    const former = await firstSet(readModels);
    const dead = connection.db.client.startSession();
    dead.startTransaction();
    const gates = connection.db.collection(`progress_${former.id}`);
    const held = { '_id.key': `gate-${String(number).padStart(2, '0')}` };
    await gates.updateOne(held, { $inc: { n: 1 } }, { session: dead });
    expect(await readModels.succeed(await readModels.create(LOG), former)).toBe(true);
    await expect(dead.commitTransaction()).rejects.toThrow();
    await dead.endSession();
    expect(await add(former)).toBe('superseded');
  });

  it('are open again once the process is silent that has closed them for a switch', async () => {
    const url = mongodbUrl();
    const readModels = await openAt(url);
    const set = await firstSet(readModels);
    const builder = fork(PROCESS, [url]);
    closeAfterwards(() => builder.kill('SIGKILL'));
    await once(builder, 'message');
    let isDone = false;
    const waiting = add(set).finally(() => (isDone = true));
    await pause(TIMES.silentMs + 500);
    expect(isDone).toBe(false);
    builder.kill('SIGSTOP');
    const began = monotonicMs();
    expect(await waiting).toEqual(['done']);
    expect(monotonicMs() - began).toBeGreaterThan(TIMES.silentMs / 3);
    expect(monotonicMs() - began).toBeLessThan(3 * TIMES.silentMs);
    expect(await add(await (await openAt(url)).live().then((live) => live!.set))).toEqual(['done']);
  });

  it('have a lease that one process holds until it releases it or does not renew it', async () => {
    const url = mongodbUrl();
    const [one, two] = [await openAt(url, { leaseMs: 3_000 }), await openAt(url, { leaseMs: 3_000 })];
    expect(await one.lease!.holder()).toBeUndefined();
    const tried = await Promise.all([one.lease!.hold(), two.lease!.hold()]);
    expect(tried.toSorted()).toEqual([false, true]);
    const [first, second] = tried[0] ? [one.lease!, two.lease!] : [two.lease!, one.lease!];
    expect(await second.holder()).toBe(`${hostname()} ${process.pid}`);
    for (let i = 0; i < 4; i += 1) {
      expect([await first.hold(), await second.hold()]).toEqual([true, false]);
      await pause(1_000);
    }
    await second.release();
    expect(await second.hold()).toBe(false);
    await pause(3_000);
    expect(await first.holder()).toBeUndefined();
    expect([await second.hold(), await first.hold()]).toEqual([true, false]);
    await second.release();
    expect(await first.hold()).toBe(true);
  });

  it.each<[string, (gate: Gate) => void]>([
    ['freezes', (gate) => gate.freeze()],
    ['cannot send its answers', (gate) => gate.loseAnswers(true)],
  ])('fail every query if the server %s', async (_, happens) => {
    const { url, ...gate } = await mongodbBehindProxy();
    const readModels = await openAt(url);
    const set = await firstSet(readModels);
    await add(set);
    happens(gate);
    const asked = [
      readModels.live(),
      set.control(),
      set.get(ONE, 'notes', 'n1'),
      set.find(ONE, 'notes', { index: 'by_shelf', equal: ['a'], limit: 1 }),
      set.at(ONE, 'notes', { index: 'on_shelf', equal: ['a'] }, [1]),
      set.progress([ONE]),
      set.furthest(),
      set.parked(1),
    ];
    for (const answer of await Promise.all(asked.map((one) => refusedWith(one))))
      expect(answer).toBe('read_models_unavailable');
    gate.thaw();
    gate.loseAnswers(false);
    gate.cut();
    await until(async () => (await refusedWith(set.control())) === 'no refusal');
    expect(await countIn(set)).toBe(1);
  });
});
