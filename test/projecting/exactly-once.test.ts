import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { fault } from '../../src/fault';
import { liveFollower } from '../../src/projecting/follow-log';
import { retryDue } from '../../src/projecting/parked-tenants';
import type { ReplayDependencies } from '../../src/projecting/project-tenants';
import { liveProjection, showing } from '../../src/projecting/show-tenants';
import type { Advanced, LiveSet, ReadModelSet } from '../../src/read-models/read-models';
import { closeAll } from '../support/closing';
import { seed, seeded } from '../support/property';
import { randomFrom, type Random } from '../support/random';
import { deferred } from '../support/waiting';
import {
  created,
  documentsOf,
  firstSet,
  followerOf,
  freshPlace,
  lines,
  linesWithoutStrange,
  openLog,
  parkedIn,
  passing,
  projectAll,
  streams,
  turn,
  updated,
  type GivenEvent,
  type Place,
  type TestLog,
} from './harness';
import { lineCollections, plainLines, type Happened } from './lines';

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
    const keyId = recorded.data?.['keyId'] as string | undefined;
    history.push({
      tenantId,
      type: recorded.type,
      position,
      bad: one.kind === 'alien' || one.kind === 'activity',
      strange: one.kind === 'strange',
      ...(keyId === undefined ? {} : { keyId }),
    });
  }
};

const KILLED = 'killed here';
const sometimes = (random: Random, chance: number): void => {
  if (random() < chance) throw new Error(KILLED);
};

const someTurns = async (random: Random): Promise<void> => {
  const turns = random() < 0.05 ? 60 : Math.floor(random() * 4);
  for (let i = 0; i < turns; i++) await turn();
};

/** Slow, sometimes very slow, and whose user is sometimes killed before, during or after a call. */
const unreliable = <T extends object>(subject: T, random: Random, happened: (what: string) => void): T =>
  passing(subject, async (call, name) => {
    // These may run under the lock of an advance.
    const isInside = name === 'load' || name === 'lastOf';
    if (!isInside) await someTurns(random);
    sometimes(random, 0.01);
    const answer = await call();
    if (name === 'live' && answer !== undefined) {
      const { set, control } = answer as LiveSet;
      return { set: unreliable(set, random, happened), control };
    }
    for (const outcome of answer instanceof Map ? answer.values() : []) happened(String(outcome));
    if (!isInside) await turn();
    sometimes(random, 0.01);
    return answer;
  });

interface ProcessRun {
  readonly log: TestLog;
  readonly place: Place;
  readonly random: Random;
  readonly program: 'old' | 'new';
  /** What was appended so far. */
  readonly history: readonly Happened[];
  readonly recorded: () => boolean;
  /** Is told of each kill and the outcome of each commit. */
  readonly happened: (what: string) => void;
}

/** What one process projects with until it is killed. */
const startedProcess = ({ log, place, random, program, happened }: ProcessRun) => {
  const projector = program === 'old' ? linesWithoutStrange : lines;
  const readModels = unreliable(place.open(), random, happened);
  const replay: ReplayDependencies = { log, streams, projector, program, readModels };
  return { replay, live: liveProjection(replay) };
};

/** Restarts a process whenever it is killed. */
const untilDone = async (run: ProcessRun, work: (run: ProcessRun) => Promise<void>): Promise<void> => {
  for (;;)
    try {
      return await work(run);
    } catch (error) {
      if (!(error as Error).message.includes(KILLED)) throw error;
      run.happened(KILLED);
    }
};

/** Follows the log until everything is recorded and projected. */
const runFollower = async (run: ProcessRun): Promise<void> => {
  const { replay, live } = startedProcess(run);
  const most = 1 + Math.floor(run.random() * 7);
  const follow = liveFollower(replay, live, { maxEvents: () => most });
  const projection = await live.current();
  await retryDue(projection!);
  for (let isDone = false; !isDone; await turn()) {
    isDone = run.recorded();
    while ((await follow())?.outcome !== 'at_end') await turn();
  }
};

/** Shows what is appended to some tenants, as whoever appends does, or as a command does that appends much. */
const runEager = async (run: ProcessRun): Promise<void> => {
  const { live } = startedProcess(run);
  const { random, history, recorded } = run;
  let killed: Error | undefined;
  const onError = (error: unknown): void => void (killed = error as Error);
  const paced = random() < 0.5 ? { isAtEase: true } : {};
  const show = showing(live, { onError, ...paced });
  for (let at = 0; !recorded() || at < history.length; await turn()) {
    const next = history.slice(at).filter(() => random() < 0.7);
    at = history.length;
    await Promise.all(next.map(({ tenantId, position }) => show(tenantId, position, 200)));
    if (killed !== undefined) throw killed;
  }
};

const stoppedIn = async (set: ReadModelSet) =>
  Object.fromEntries(
    (await parkedIn(set)).map(({ tenant_id, position, program }) => [tenant_id, { position, program }]),
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
  projectors: fc.integer({ min: 2, max: 4 }),
});

/** Records and projects, compares with a plain fold, and returns what happened, in order. */
const follow = async ({ first, second, seed: own, projectors }: Course): Promise<readonly string[]> => {
  const log = await openLog();
  const place = freshPlace(lines);
  const trace: string[] = [];
  const history: (Happened & { strange: boolean })[] = [];
  const set = await firstSet(place.open());
  for (const [program, acts] of [
    ['old', first],
    ['new', second],
  ] as const) {
    let isRecorded = false;
    const recording = recordAll(log, acts, history).then(() => (isRecorded = true));
    const recorded = () => isRecorded;
    const happened = (what: string): void => void trace.push(what);
    const runs = Array.from({ length: projectors }, (_, number) => {
      const run = { log, place, random: randomFrom(own + number), program, history, recorded, happened };
      return untilDone(run, number % 2 === 0 ? runFollower : runEager);
    });
    await Promise.all([recording, ...runs]);
    const seen = history.map((event) => asSeenBy(program, event));
    expect(await documentsOf(set, lineCollections)).toEqual(plainLines(seen));
    const stopped = plainParked(seen, program);
    expect(await stoppedIn(set)).toEqual(stopped);
    const { to, marks } = await set.control();
    expect(marks).toBe(Object.keys(stopped).length);
    expect(to?.position).toBe((await log.head())?.position);
  }
  await closeAll();
  return trace;
};

describe('projecting', () => {
  it(seeded('equals a plain fold, even if processes are killed, late or duplicated'), async () => {
    const counts: Record<string, number> = {};
    const property = fc.asyncProperty(course, async (one) => {
      for (const what of await follow(one)) counts[what] = (counts[what] ?? 0) + 1;
    });
    await fc.assert(property, { seed, numRuns: 60, endOnFailure: true });
    expect(counts[KILLED]).toBeGreaterThan(20);
    expect(counts['overtaken']).toBeGreaterThan(50);
  });

  const projected = async () => {
    const log = await openLog();
    const tenantId = randomUUID();
    const history: Happened[] = [];
    const record = async (...events: GivenEvent[]) => {
      for (const one of events) {
        const { position } = await log.record(streams.tenant(tenantId), one);
        history.push({ tenantId, type: one.type, position, bad: false });
      }
    };
    const set = await firstSet(freshPlace(lines).open());
    const expectPlain = async () =>
      expect(await documentsOf(set, lineCollections)).toEqual(plainLines(history));
    return { log, record, set, expectPlain };
  };

  it('applies events only once that another process has committed just before', async () => {
    const { log, record, set, expectPlain } = await projected();
    await record(created(), updated('a'));
    const [mine, follower] = [followerOf(set, log), followerOf(set, log)];
    await mine.toEnd();
    await record(updated('b'));
    await follower.toEnd();
    const before = await set.control();
    const passed = { outcome: 'done', events: 1, isEnd: true };
    expect(await mine.step()).toEqual({ ...passed, applied: 0, to: before.to?.position });
    expect(await set.control()).toEqual(before);
    await record(updated('c'));
    const busy = { ...set, advance: () => Promise.reject(fault('read_models_busy', 'It is locked.')) };
    expect(await followerOf(busy, log).step()).toMatchObject({ outcome: 'busy', events: 0 });
    const { position } = (await log.head())!;
    expect(await mine.step()).toEqual({ ...passed, applied: 1, to: position });
    await expectPlain();
  });

  it('is not harmed by a process that wakes up much later', async () => {
    const { log, record, set, expectPlain } = await projected();
    await record(created(), updated('a'));
    const [asleep, woken] = [deferred(), deferred()];
    const outcomes: Advanced[] = [];
    const suspended: ReadModelSet = {
      ...set,
      advance: async (...asked) => {
        asleep.resolve();
        await woken.promise;
        outcomes.push(await set.advance(...asked));
        return outcomes.at(-1) as Advanced;
      },
    };
    const stale = projectAll(suspended, log);
    await asleep.promise;
    await projectAll(set, log);
    await record(updated('b'), updated('c'));
    await projectAll(set, log);
    await record(updated('d'));
    woken.resolve();
    await stale;
    expect(outcomes.map((outcome) => [...(outcome as Map<string, string>).values()])).toEqual([
      ['overtaken'],
      ['done'],
    ]);
    await expectPlain();
  });

  it.each<[string, (isFailing: () => boolean, set: ReadModelSet) => ReadModelSet['advance']]>([
    [
      'whose answer was lost',
      (isFailing, set) =>
        async (...asked) => {
          const outcome = await set.advance(...asked);
          if (isFailing()) throw new Error('no luck');
          return outcome;
        },
    ],
    [
      'that failed',
      (isFailing, set) => (before, work, to) =>
        set.advance(
          before,
          async (group) => {
            const commits = await work(group);
            if (isFailing()) throw new Error('no luck');
            return commits;
          },
          to,
        ),
    ],
    [
      'whose work the store ran twice',
      (_, set) => (before, work, to) =>
        set.advance(before, async (group) => (await work(group)) && work(group), to),
    ],
  ])('applies events only once after a commit %s', async (what, advancing) => {
    const { log, record, set, expectPlain } = await projected();
    await record(created(), updated('a'));
    let isFailing = false;
    const mine = followerOf({ ...set, advance: advancing(() => isFailing, set) }, log);
    await mine.toEnd();
    await record(updated('b'));
    isFailing = true;
    const step = mine.step();
    if (what.includes('twice')) await step;
    else await expect(step).rejects.toThrow('no luck');
    isFailing = false;
    await record(updated('c'));
    await mine.toEnd();
    await expectPlain();
  });

  it('writes nothing into a set that has a successor', async () => {
    const { log, record } = await projected();
    const readModels = freshPlace(lines).open();
    const [former, next] = [await firstSet(readModels), await readModels.create('log')];
    const mine = followerOf(former, log);
    await mine.toEnd();
    expect(await readModels.succeed(next, former)).toBe(true);
    await record(created());
    expect(await mine.toEnd()).toBe('superseded');
    expect(await mine.toEnd()).toBe('superseded');
    expect(await documentsOf(former, lineCollections)).toEqual({});
  });
});
