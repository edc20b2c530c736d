import type { Control, LiveSet, ReadModels } from '../../src/read-models/read-models';
import { at, put } from './contract/storage';

/**
 * Servers start, project, remove and are killed; builders build, switch and are killed; all are suspended for long;
 * writers and readers work. One step of one process at a time, chosen at random from a seed. Time is counted in steps.
 */
export interface World {
  /** A process opens the read models. `between` is where others may run, or the process may end. */
  open(process: Process): ReadModels;
  /** Called when a process was killed. */
  killed(process: Process): void;
  /** The sets that were ever named, and have neither a successor nor the mark. Empty: cannot be told. */
  ends(): readonly string[];
}

export interface Process {
  readonly between: () => Promise<void>;
  readonly now: () => number;
  readonly graceMs: number;
}

export interface Outcome {
  readonly failure?: string;
  readonly switches: number;
  readonly removals: number;
  readonly answered: number;
}

interface Model {
  readonly steps: number;
  /** The clock of the store. Left out: time is counted in steps. */
  readonly now?: () => number;
  /** The work of `advance` may let others run. */
  readonly pausesInWork?: boolean;
  /** A request that joins a look which was already sent: a mistake. */
  readonly joinsLate?: boolean;
  /** Removes what was superseded just now: a mistake. */
  readonly isEager?: boolean;
}

const TENANT = '11111111-1111-4111-8111-111111111111';
const LOG = 'log';

const randomFrom = (seed: number) => {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  return (): number => (state = (state * 1664525 + 1013904223) >>> 0) / 2 ** 32;
};

const positionOf = ({ to }: Control): number => Number(to?.position ?? 0);

/** What all processes of one run share, and what they must not see. */
const newRun = (seed: number, { isEager = false, now }: Model) => {
  const random = randomFrom(seed);
  const pick = (n: number): number => Math.floor(random() * n);
  const grace = random() < 0.7 ? 20 + pick(60) : 300 + pick(300);
  const run = {
    random,
    pick,
    grace,
    removalMs: isEager ? 5 : grace,
    step: 0,
    now: now ?? ((): number => run.step),
    head: 0,
    answered: 0,
    seen: 0,
    switches: 0,
    removals: 0,
    hasChain: false,
    failure: undefined as string | undefined,
    look: undefined as Look | undefined,
    fail: (what: string): void => {
      run.failure ??= `seed ${seed}, step ${run.step}: ${what}`;
    },
  };
  return run;
};

type Run = ReturnType<typeof newRun>;

/** A look at the control state that requests of one instance share. */
interface Look {
  readonly at: number;
  isSent: boolean;
  result?: LiveSet | undefined;
  isDone?: boolean;
}

type Kind = (run: Run, process: Process, models: ReadModels, model: Model) => Promise<void>;

/** Once there is a chain, it never leads nowhere. */
const liveIn = async (run: Run, models: ReadModels): Promise<LiveSet | undefined> => {
  const { hasChain } = run;
  const live = await models.live();
  if (live === undefined && hasChain) run.fail('the root leads nowhere');
  return live;
};

const project = (run: Run, process: Process, { set }: LiveSet, { pausesInWork = true }: Model) =>
  set.advance(async (now) => {
    const to = Math.min(run.head, positionOf(now) + 1 + run.pick(4));
    if (pausesInWork) await process.between();
    return { to: at(to), writes: [put(TENANT, 'counts', 'n', { count: to })], parked: 0 };
  });

const removeOld = async (run: Run, models: ReadModels): Promise<void> => {
  const isOld = ({ supersededAt, renewedAt }: Control): boolean =>
    run.now() - Date.parse(supersededAt ?? renewedAt) > run.removalMs;
  const old = (await models.list()).filter(({ control, isLive }) => !isLive && isOld(control));
  const goes = old.find(({ control }) => control.next !== undefined) ?? old[0];
  if (goes !== undefined && (await models.remove(goes.id))) run.removals += 1;
};

const server: Kind = async (run, process, models, model) => {
  if ((await liveIn(run, models)) === undefined) {
    const first = await models.create(LOG);
    if (await models.succeed(first, undefined)) run.hasChain = true;
  }
  for (;;) {
    const live = await liveIn(run, models);
    if (live === undefined) return;
    await project(run, process, live, model);
    await removeOld(run, models);
  }
};

const builder: Kind = async (run, process, models) => {
  if (!run.hasChain) return process.between();
  const built = await models.create(LOG);
  for (let i = 0; i < 60; i += 1) {
    const live = await liveIn(run, models);
    if (live === undefined || !(await built.renew())) return;
    const to = positionOf(live.control);
    await built.advance(async () => ({
      to: at(to),
      writes: [put(TENANT, 'counts', 'n', { count: to })],
      parked: 0,
    }));
    for (let wait = run.pick(6); wait >= 0; wait -= 1) await process.between();
    if (await models.succeed(built, live.set)) {
      run.switches += 1;
      return;
    }
  }
};

const writer: Kind = async (run, process, models) => {
  for (;;) {
    const position = (run.head += 1);
    for (;;) {
      await process.between();
      const live = await liveIn(run, models);
      if (live !== undefined && positionOf(live.control) >= position) break;
    }
    run.answered = Math.max(run.answered, position);
    await process.between();
  }
};

/** Only requests that arrived before a look was sent may share it. */
const lookShared = async (
  run: Run,
  { between }: Process,
  models: ReadModels,
  { joinsLate = false }: Model,
): Promise<LiveSet | undefined> => {
  const joined = run.look;
  if (joined !== undefined && (!joined.isSent || joinsLate)) {
    while (joined.isDone !== true) {
      if (run.now() - joined.at > 300) return liveIn(run, models);
      await between();
    }
    return joined.result;
  }
  const mine: Look = { at: run.now(), isSent: false };
  run.look = mine;
  await between();
  mine.isSent = true;
  const result = await liveIn(run, models);
  await between();
  Object.assign(mine, { result, isDone: true });
  if (run.look === mine) run.look = undefined;
  return result;
};

/** A request shows all that was answered as shown, and all that another request showed, before it began. */
const reader: Kind = async (run, process, models, model) => {
  for (;;) {
    const [must, began] = [Math.max(run.answered, run.seen), run.now()];
    const live = await lookShared(run, process, models, model);
    if (live === undefined) continue;
    if (positionOf(live.control) < must && run.now() - began <= run.grace / 2)
      run.fail(`a request saw ${positionOf(live.control)}, but ${must} was shown before it began`);
    for (let reads = run.pick(40); reads >= 0; reads -= 1) {
      await process.between();
      if (run.now() - began > run.grace / 2) break;
      const shown = await live.set.get(TENANT, 'counts', 'n').catch(() => undefined);
      if (shown === undefined && must > 0) run.fail('a set was removed while a request read it');
      run.seen = Math.max(run.seen, Number(shown?.['count'] ?? 0));
    }
    await process.between();
  }
};

const KINDS: readonly Kind[] = [server, server, builder, builder, builder, writer, reader, reader];

/** A process of one kind, which goes on by one step when it is resumed. */
const start = (kind: Kind, run: Run, world: World, model: Model) => {
  let resume: (() => void) | undefined;
  let paused: () => void = () => undefined;
  const process: Process = {
    between: () =>
      new Promise((resolve) => {
        resume = resolve;
        paused();
      }),
    now: run.now,
    graceMs: run.removalMs,
  };
  const state = { asleepUntil: 0, hasEnded: false };
  const end = (): void => {
    state.hasEnded = true;
    paused();
  };
  const begin = (): void => {
    kind(run, process, world.open(process), model).then(end, (error: unknown) => {
      run.fail(`a process failed: ${String(error)}`);
      end();
    });
  };
  return {
    process,
    state,
    step: (): Promise<void> =>
      new Promise((resolve) => {
        paused = resolve;
        const next = resume ?? begin;
        resume = undefined;
        next();
      }),
  };
};

export const simulate = async (seed: number, world: World, model: Model): Promise<Outcome> => {
  const run = newRun(seed, model);
  const { random, pick, grace } = run;
  const nap = Math.min(grace, 80);
  const begin = (kind: Kind) => start(kind, run, world, model);
  const processes = KINDS.map(begin);
  for (; run.step < model.steps && run.failure === undefined; run.step += 1) {
    const i = pick(processes.length);
    const { state, step, process } = processes[i] as ReturnType<typeof begin>;
    if (random() < 0.01) state.asleepUntil = run.now() + nap + pick(2 * nap);
    if (state.asleepUntil > run.now()) continue;
    const isKilled = random() < 0.004;
    if (!isKilled) await step();
    if (!isKilled && !state.hasEnded) continue;
    world.killed(process);
    processes[i] = begin(KINDS[i] as Kind);
  }
  if (world.ends().length > 1) run.fail(`two live sets: ${world.ends().join(', ')}`);
  const { switches, removals, answered, failure } = run;
  return { switches, removals, answered, ...(failure === undefined ? {} : { failure }) };
};
