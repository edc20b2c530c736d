import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import type { Position } from '../../src/event-log/event-log';
import { batchOf, type Batch } from '../../src/projecting/batch';
import { retryDue } from '../../src/projecting/retry-parked';
import { project } from '../../src/projecting/projection-run';
import type { Generation, ReadModels } from '../../src/read-models/read-models';
import { closeAll } from '../support/closing';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { seed, seeded } from '../support/property';
import { randomFrom, type Random } from '../support/random';
import { isClustered } from '../support/profile';
import { storeUnderTest } from '../support/store-under-test';
import { until } from '../support/waiting';
import { lineCollections, linesProjector, plainLines, type Happened } from './lines';
import {
  allOf,
  created,
  documentsOf,
  openLog,
  openReadModels,
  parkedIn,
  runOf,
  streams,
  turn,
  updated,
} from './harness';
import type { TestLog, GivenEvent } from './harness';
import { createAndOpen } from '../support/generations';

const ID = { projection: 'lines', version: 1, generation: 'one' };

/** What may happen to a tenant. `strange` is readable by the new program only, `alien` by none. */
const kinds = ['updated', 'plan', 'key', 'revoke', 'strange', 'alien', 'activity'] as const;
interface Act {
  readonly tenant: number;
  readonly kind: (typeof kinds)[number];
  readonly key: number;
}
const act: fc.Arbitrary<Act> = fc.record({
  tenant: fc.nat(3),
  kind: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('updated', 'plan', 'key', 'revoke') },
    { weight: 1, arbitrary: fc.constantFrom('strange', 'activity') },
    { weight: 1, arbitrary: fc.constantFrom('updated', 'alien') },
  ),
  key: fc.nat(2),
});

/** The same for the same seed, because documents are ordered by them. */
const ids = randomFrom(seed);
const seededId = (): string =>
  '00000000-0000-4000-8000-000000000000'.replaceAll('0', () => Math.floor(ids() * 16).toString(16));
const tenants = [0, 1, 2, 3].map(seededId);
const keys = [0, 1, 2].map(seededId);
const APPLICATION = seededId();

const givenBy = ({ kind, key }: Act): GivenEvent => {
  const keyId = keys[key] as string;
  switch (kind) {
    case 'updated':
      return updated('usual');
    case 'strange':
      return updated('strange');
    case 'plan':
      return { type: 'TenantPlanChanged', data: { includedMonthlyActiveTokens: 1 } };
    case 'key':
      return { type: 'KeyAdded', data: { keyId, applicationId: APPLICATION, digest: 'a'.repeat(64) } };
    case 'revoke':
      return { type: 'KeyRevoked', data: { keyId, applicationId: APPLICATION } };
    case 'alien':
    case 'activity':
      return { type: 'SomethingNew' };
  }
};

/** Appends to the log, and keeps a record of what it appended. */
const recordAll = async (
  log: TestLog,
  acts: readonly Act[],
  history: (Happened & { strange: boolean })[],
) => {
  for (const one of acts) {
    const tenantId = tenants[one.tenant] as string;
    const recorded = givenBy(one);
    const stream = one.kind === 'activity' ? streams.activity(tenantId) : streams.tenant(tenantId);
    const { position } = await log.record(stream, recorded);
    if (one.kind === 'activity') continue;
    const keyId = recorded.data?.['keyId'] as string | undefined;
    history.push({
      tenantId,
      type: recorded.type,
      position,
      bad: one.kind === 'alien',
      strange: one.kind === 'strange',
      ...(keyId === undefined ? {} : { keyId }),
    });
  }
};

const KILLED = 'killed here';
const sometimes = (random: Random, chance: number): void => {
  if (random() < chance) throw new Error(KILLED);
};

/** A generation that is slow, sometimes very slow, and whose user is sometimes killed before or after a call. */
const unreliable = (generation: Generation, random: Random, happened: (what: string) => void): Generation => {
  const pass = async <T>(call: () => Promise<T>): Promise<T> => {
    const turns = random() < 0.05 ? 60 : Math.floor(random() * 4);
    for (let i = 0; i < turns; i++) await turn();
    sometimes(random, 0.02);
    const answer = await call();
    await turn();
    sometimes(random, 0.02);
    return answer;
  };
  return {
    ...generation,
    control: () => pass(() => generation.control()),
    load: (wanted) => pass(() => generation.load(wanted)),
    commit: (n, to, writes) =>
      pass(async () => {
        const isDone = await generation.commit(n, to, writes);
        happened(`commit ${n} up to ${to?.position}: ${isDone}`);
        return isDone;
      }),
    scan: (collection, limit, after) => pass(() => generation.scan(collection, limit, after)),
  };
};

/** The log's events after a position, in batches of random size. */
const cutAtRandom = (log: TestLog, random: Random) =>
  async function* (after: Position | undefined): AsyncGenerator<Batch> {
    for await (const batch of log.readAll({ after }))
      for (let from = 0; from < batch.length;) {
        const to = from + 1 + Math.floor(random() * 7);
        yield batchOf(batch.slice(from, to), streams);
        from = to;
      }
  };

interface ProjectorRun {
  readonly log: TestLog;
  readonly folder: string;
  readonly random: Random;
  readonly program: 'old' | 'new';
  readonly recorded: () => boolean;
  /** Is told of each kill and each commit. */
  readonly happened: (what: string) => void;
}

/** One projector process: restarted when it is killed; ends when everything is recorded and projected. */
const runProjector = async ({
  log,
  folder,
  random,
  program,
  recorded,
  happened,
}: ProjectorRun): Promise<void> => {
  const projector = linesProjector(
    (event) => program === 'old' && event.type === 'TenantUpdated' && event.data.name === 'strange',
  );
  for (;;) {
    const onWrite = () => sometimes(random, 0.01);
    const readModels: ReadModels = await storeUnderTest(folder, { onWrite });
    try {
      const generation = await createAndOpen(readModels, ID, projector.collections, 'log');
      const run = runOf(projector, unreliable(generation, random, happened), log, program);
      await retryDue(run);
      for (let done = false; !done; await turn()) {
        done = recorded();
        await project(run, cutAtRandom(log, random));
      }
      return;
    } catch (error) {
      if (!(error as Error).message.includes(KILLED)) throw error;
      happened(KILLED);
    } finally {
      await readModels.close();
    }
  }
};

const stoppedIn = async (generation: Generation) =>
  Object.fromEntries(
    (await parkedIn(generation)).map(({ tenant_id, position, program }) => [
      tenant_id,
      { position, program },
    ]),
  );

const plainParked = (history: readonly Happened[], program: string) => {
  const first = new Map<string, string>();
  for (const { tenantId, position, bad } of history)
    if (bad && !first.has(tenantId)) first.set(tenantId, position);
  return Object.fromEntries([...first].map(([tenantId, position]) => [tenantId, { position, program }]));
};

const asSeenBy = (program: string, one: Happened & { strange: boolean }): Happened => ({
  ...one,
  bad: one.bad || (program === 'old' && one.strange),
});

interface Course {
  readonly first: readonly Act[];
  readonly second: readonly Act[];
  readonly seed: number;
  readonly projectors: number;
}

const course: fc.Arbitrary<Course> = fc.record({
  first: fc.array(act, { minLength: 1, maxLength: 60 }),
  second: fc.array(act, { maxLength: 30 }),
  seed: fc.integer(),
  projectors: fc.integer({ min: 2, max: 3 }),
});

/** Records and projects, compares with a plain fold, and returns what happened, in order. */
const follow = async ({ first, second, seed: own, projectors }: Course): Promise<readonly string[]> => {
  const log = await openLog();
  const folder = freshFolder();
  const trace: string[] = [];
  const history: (Happened & { strange: boolean })[] = [];
  const check = await storeUnderTest(folder, {});
  try {
    const generation = await createAndOpen(check, ID, linesProjector().collections, 'log');
    for (const [program, acts] of [
      ['old', first],
      ['new', second],
    ] as const) {
      let isRecorded = false;
      const recording = recordAll(log, acts, history).then(() => (isRecorded = true));
      const recorded = () => isRecorded;
      const lives = Array.from({ length: projectors }, (_, number) => {
        const happened = (what: string): void => void trace.push(`${program} ${number} ${what}`);
        return runProjector({ log, folder, random: randomFrom(own + number), program, recorded, happened });
      });
      await Promise.all([recording, ...lives]);
      const seen = history.map((event) => asSeenBy(program, event));
      expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(seen));
      expect(await stoppedIn(generation)).toEqual(plainParked(seen, program));
      expect((await generation.control()).to?.position).toBe((await log.head())?.position);
    }
  } finally {
    await check.close();
    await closeAll();
  }
  return trace;
};

describe('projecting', () => {
  it(seeded('equals a plain fold, even if projectors are killed, late or duplicated'), async () => {
    const kills: number[] = [];
    const property = fc.asyncProperty(course, async (one) => {
      kills.push((await follow(one)).filter((what) => what.endsWith(KILLED)).length);
    });
    await fc.assert(property, { seed, numRuns: 40, endOnFailure: true });
    expect(kills.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(kills.length);
  });

  itIf(!isClustered, 'answers over a network come in any order')(
    seeded('takes the same course again for the same seed'),
    async () => {
      for (const one of fc.sample(course, { seed, numRuns: 5 }))
        expect(await follow(one)).toEqual(await follow(one));
    },
  );

  const projected = async () => {
    const log = await openLog();
    const tenantId = randomUUID();
    const stream = streams.tenant(tenantId);
    const history: Happened[] = [];
    const record = async (...events: GivenEvent[]) => {
      for (const one of events) {
        const { position } = await log.record(stream, one);
        history.push({ tenantId, type: one.type, position, bad: false });
      }
    };
    const readModels = await openReadModels(freshFolder(), {});
    const projector = linesProjector();
    const generation = await createAndOpen(readModels, ID, projector.collections, 'log');
    const run = runOf(projector, generation, log);
    const all = allOf(log);
    const expectPlain = async () =>
      expect(await documentsOf(generation, lineCollections)).toEqual(plainLines(history));
    return { log, record, history, readModels, generation, run, all, expectPlain };
  };

  it('applies a redelivered batch only once', async () => {
    const { log, record, generation, run, all, expectPlain } = await projected();
    await record(created(), updated('a'), updated('b'));
    await project(run, all);
    const n = (await generation.control()).n;
    await record(updated('c'));
    let late = 0;
    /** Another projector has committed the same batch just before. */
    const overtaken: Generation = {
      ...generation,
      commit: async (at, to, writes) => {
        if (late++ === 0) await generation.commit(at, to, writes);
        return generation.commit(at, to, writes);
      },
    };
    await project({ ...run, generation: overtaken }, all);
    expect(late).toBe(1);
    expect((await generation.control()).n).toBe(n + 1);
    expect((await generation.control()).to?.position).toBe((await log.head())?.position);
    await expectPlain();
  });

  it('is not harmed by a projector that wakes up much later', async () => {
    const { record, generation, run, all, expectPlain } = await projected();
    await record(created(), updated('a'));
    let wake: () => void = () => undefined;
    const asleep = new Promise<void>((resolve) => (wake = resolve));
    let isAsleep = false;
    const refused: boolean[] = [];
    const suspended: Generation = {
      ...generation,
      commit: async (n, to, writes) => {
        isAsleep = true;
        await asleep;
        const won = await generation.commit(n, to, writes);
        refused.push(!won);
        return won;
      },
    };
    const stale = project({ ...run, generation: suspended }, all);
    await until(() => isAsleep);
    await project(run, all);
    await record(updated('b'), updated('c'));
    await project(run, all);
    await record(updated('d'));
    wake();
    await stale;
    expect(refused).toEqual([true, false]);
    await expectPlain();
  });

  it('ignores an empty batch', async () => {
    const { record, generation, run, all, expectPlain } = await projected();
    await record(created(), updated('a'));
    await project(run, async function* (after) {
      yield [];
      yield* all(after);
      yield [];
    });
    expect((await generation.control()).n).toBe(1);
    await expectPlain();
  });

  it('commits fewer events at once if the store limits the bytes', async () => {
    const { log, record, run, all, history } = await projected();
    await record(created(), ...Array.from({ length: 40 }, (_, i) => updated(`name ${i}`)));
    const small = await openReadModels(freshFolder(), { maxCommitBytes: 1_000 });
    const generation = await createAndOpen(small, ID, run.projector.collections, 'log');
    await project({ ...run, generation }, all);
    const { n, to } = await generation.control();
    expect(n).toBeGreaterThan(3);
    expect(to?.position).toBe((await log.head())?.position);
    expect(await documentsOf(generation.reader, lineCollections)).toEqual(plainLines(history));
    const tiny = await openReadModels(freshFolder(), { maxCommitBytes: 10 });
    const none = await createAndOpen(tiny, ID, run.projector.collections, 'log');
    await expect(project({ ...run, generation: none }, all)).rejects.toMatchObject({
      code: 'commit_too_large',
    });
  });

  it('resumes where it was after the response to a commit was lost', async () => {
    const { record, generation, run, all, expectPlain } = await projected();
    await record(created(), updated('a'), updated('b'));
    const lost: Generation = {
      ...generation,
      commit: async (n, to, writes) => {
        await generation.commit(n, to, writes);
        throw new Error('no answer');
      },
    };
    await expect(project({ ...run, generation: lost }, all)).rejects.toThrow('no answer');
    await record(updated('c'));
    await project(run, all);
    await expectPlain();
  });
});
