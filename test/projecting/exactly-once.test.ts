import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { compose } from '../../projections/projector';
import { fault } from '../../src/fault';
import { projection, readingInPieces } from '../../src/projecting/project';
import type { Control, ReadModelSet } from '../../src/read-models/read-models';
import { closeAll } from '../support/closing';
import { seed, seeded } from '../support/property';
import { randomFrom, type Random } from '../support/random';
import { until } from '../support/waiting';
import {
  created,
  documentsOf,
  firstSet,
  foldingOf,
  freshPlace,
  lines,
  openLog,
  parkedIn,
  projectAll,
  retryAll,
  streams,
  turn,
  updated,
  type GivenEvent,
  type Place,
  type TestLog,
} from './harness';
import { lineCollections, linesProjector, plainLines, type Happened } from './lines';

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

/** A set that is slow, sometimes very slow, and whose user is sometimes killed before, during or after a call. */
const unreliable = (set: ReadModelSet, random: Random, happened: (what: string) => void): ReadModelSet => {
  const pass = async <T>(call: () => Promise<T>): Promise<T> => {
    await someTurns(random);
    sometimes(random, 0.02);
    const answer = await call();
    await turn();
    sometimes(random, 0.02);
    return answer;
  };
  return {
    ...set,
    control: () => pass(set.control),
    scan: (...scope) => pass(() => set.scan(...scope)),
    get: (...key) => pass(() => set.get(...key)),
    advance: (work) =>
      pass(async () => {
        const outcome = await set.advance(async (now) => {
          const change = await work(now);
          sometimes(random, 0.02);
          return change;
        });
        happened(outcome);
        return outcome;
      }),
  };
};

interface ProjectorRun {
  readonly log: TestLog;
  readonly place: Place;
  readonly random: Random;
  readonly program: 'old' | 'new';
  readonly recorded: () => boolean;
  /** Is told of each kill and the outcome of each commit. */
  readonly happened: (what: string) => void;
}

/** One process: restarted when it is killed; ends when everything is recorded and projected. */
const runProjector = async (run: ProjectorRun): Promise<void> => {
  const { log, place, random, program, recorded, happened } = run;
  const isOld = program === 'old';
  const folding = foldingOf(
    compose([
      linesProjector((event) => isOld && event.type === 'TenantUpdated' && event.data.name === 'strange'),
    ]),
    program,
  );
  const readModels = await place.open(() => someTurns(random));
  for (;;)
    try {
      const set = unreliable((await readModels.live())!.set, random, happened);
      const readAfter = readingInPieces((after) => log.readAll({ after }));
      const size = () => 1 + Math.floor(random() * 7);
      const projected = projection(set, (after) => readAfter(after, size()), folding);
      await retryAll(set, log, folding, { between: async () => void (await projected.step()) });
      for (let done = false; !done; await turn()) {
        done = recorded();
        await projected.toEnd();
      }
      return;
    } catch (error) {
      if (!(error as Error).message.includes(KILLED)) throw error;
      happened(KILLED);
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
  projectors: fc.integer({ min: 2, max: 3 }),
});

/** Records and projects, compares with a plain fold, and returns what happened, in order. */
const follow = async ({ first, second, seed: own, projectors }: Course): Promise<readonly string[]> => {
  const log = await openLog();
  const place = freshPlace(lines);
  const trace: string[] = [];
  const history: (Happened & { strange: boolean })[] = [];
  const set = await firstSet(await place.open());
  for (const [program, acts] of [
    ['old', first],
    ['new', second],
  ] as const) {
    let isRecorded = false;
    const recording = recordAll(log, acts, history).then(() => (isRecorded = true));
    const recorded = () => isRecorded;
    const happened = (what: string): void => void trace.push(what);
    const runs = Array.from({ length: projectors }, (_, number) =>
      runProjector({ log, place, random: randomFrom(own + number), program, recorded, happened }),
    );
    await Promise.all([recording, ...runs]);
    const seen = history.map((event) => asSeenBy(program, event));
    expect(await documentsOf(set, lineCollections)).toEqual(plainLines(seen));
    const stopped = plainParked(seen, program);
    expect(await stoppedIn(set)).toEqual(stopped);
    const { to, parked } = await set.control();
    expect(parked).toBe(Object.keys(stopped).length);
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
    await fc.assert(property, { seed, numRuns: 100, endOnFailure: true });
    expect(counts[KILLED]).toBeGreaterThan(50);
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
    const set = await firstSet(await freshPlace(lines).open());
    const expectPlain = async () =>
      expect(await documentsOf(set, lineCollections)).toEqual(plainLines(history));
    return { log, record, set, expectPlain };
  };

  it('applies events only once that another process has committed just before', async () => {
    const { log, record, set, expectPlain } = await projected();
    await record(created(), updated('a'));
    const readAfter = readingInPieces((after) => log.readAll({ after }));
    const mine = projection(set, readAfter, foldingOf());
    await mine.toEnd();
    await record(updated('b'));
    await projectAll(set, log);
    const { n, to } = await set.control();
    const shown = { position: to?.position, parked: 0 };
    expect(await mine.step()).toEqual({ outcome: 'overtaken', events: 0, parked: [], shown });
    expect((await mine.step()).outcome).toBe('at_end');
    expect((await set.control()).n).toBe(n);
    await record(updated('c'));
    const busy = { ...set, advance: () => Promise.reject(fault('read_models_busy', 'It is locked.')) };
    const waiting = projection(busy, readAfter, foldingOf());
    expect(await waiting.step()).toEqual({ outcome: 'busy', events: 0, parked: [], shown });
    expect(await mine.step()).toMatchObject({ outcome: 'done', events: 1 });
    await expectPlain();
  });

  it('does not keep documents that another process has changed at the same position', async () => {
    const { log, record, set } = await projected();
    await record(created());
    const readAfter = readingInPieces((after) => log.readAll({ after }));
    const mine = projection(set, readAfter, foldingOf());
    await mine.toEnd();
    const [name] = Object.keys(await documentsOf(set, ['heads']));
    const key = { tenantId: name!.split(' ')[0]!, collection: 'heads', key: 'all' };
    const work = async ({ parked }: Control) => ({
      writes: [{ ...key, document: { count: 7, sum: 0 } }],
      parked,
    });
    await set.advance(work);
    await record(updated('a'));
    expect((await mine.step()).outcome).toBe('done');
    expect((await documentsOf(set, ['heads']))[name!]).toMatchObject({ count: 8 });
  });

  it('is not harmed by a process that wakes up much later', async () => {
    const { log, record, set, expectPlain } = await projected();
    await record(created(), updated('a'));
    let wake: () => void = () => undefined;
    const asleep = new Promise<void>((resolve) => (wake = resolve));
    let isAsleep = false;
    const outcomes: string[] = [];
    const suspended: ReadModelSet = {
      ...set,
      advance: async (work) => {
        const outcome = await set.advance(async (now) => {
          const change = await work(now);
          isAsleep = true;
          await asleep;
          return change;
        });
        outcomes.push(outcome);
        return outcome;
      },
    };
    const stale = projectAll(suspended, log);
    await until(() => isAsleep);
    await projectAll(set, log);
    await record(updated('b'), updated('c'));
    await projectAll(set, log);
    await record(updated('d'));
    wake();
    await stale;
    expect(outcomes).toEqual(['overtaken', 'done']);
    await expectPlain();
  });

  it('resumes where it was after the response to a commit was lost', async () => {
    const { log, record, set, expectPlain } = await projected();
    await record(created(), updated('a'), updated('b'));
    let isLost = true;
    const lost: ReadModelSet = {
      ...set,
      advance: async (work) => {
        const outcome = await set.advance(work);
        if (isLost) throw new Error('no answer');
        return outcome;
      },
    };
    const readAfter = readingInPieces((after) => log.readAll({ after }));
    const mine = projection(lost, readAfter, foldingOf());
    await expect(mine.step()).rejects.toThrow('no answer');
    isLost = false;
    await record(updated('c'));
    await mine.toEnd();
    await expectPlain();
  });

  it('applies events only once after a commit that failed', async () => {
    const { log, record, set, expectPlain } = await projected();
    await record(created(), updated('a'));
    let isFull = false;
    const full: ReadModelSet = {
      ...set,
      advance: (work) =>
        set.advance(async (now) => {
          const change = await work(now);
          if (isFull) throw new Error('no space');
          return change;
        }),
    };
    const mine = projection(
      full,
      readingInPieces((after) => log.readAll({ after })),
      foldingOf(),
    );
    await mine.toEnd();
    await record(updated('b'));
    isFull = true;
    await expect(mine.step()).rejects.toThrow('no space');
    isFull = false;
    await mine.toEnd();
    await expectPlain();
  });

  it('applies events only once if the store runs the work of a commit again', async () => {
    const { log, record, set, expectPlain } = await projected();
    await record(created(), updated('a'));
    const twice: ReadModelSet = {
      ...set,
      advance: (work) => set.advance(async (now) => (await work(now)) && work(now)),
    };
    await projectAll(twice, log);
    await expectPlain();
  });

  it('writes nothing into a set that has a successor', async () => {
    const { log, record } = await projected();
    const readModels = await freshPlace(lines).open();
    const [former, next] = [await firstSet(readModels), await readModels.create('log')];
    const readAfter = readingInPieces((after) => log.readAll({ after }));
    const mine = projection(former, readAfter, foldingOf());
    await mine.toEnd();
    expect(await readModels.succeed(next, former)).toBe(true);
    await record(created());
    expect(await mine.toEnd()).toBe('superseded');
    expect(await mine.toEnd()).toBe('superseded');
    expect(await documentsOf(former, lineCollections)).toEqual({});
  });
});
