import type { Read, Steps } from './model-documents';
import {
  advance,
  afterEvents,
  append,
  controlOf,
  createSet,
  eventsOf,
  findLive,
  newRun,
  progressOf,
  ROOT,
  succeed,
  TENANTS,
  type Mistake,
  type Run,
  type SetControl,
  type TenantProgress,
} from './tenant-progress-model';

/**
 * Whoever appends projects its tenant at once; servers follow what nobody projected, and remove what was left; bad events
 * park their tenant, and an operator mends and frees it; builders build successors and switch. One step of one process at
 * a time, chosen at random from a seed; all are killed and suspended anywhere. Time is counted in steps.
 */
type Process = (run: Run) => Steps;

const STEPS = 1_800;
const BAD_APPENDED = 0.01;
const BAD_REPORTED = 0.03;

function* wait(run: Run, atMost: number): Steps {
  for (let steps = run.pick(atMost); steps >= 0; steps -= 1) yield;
}

const positionIn = ({ documents }: Run, id: string, tenant: number): number =>
  documents.read(progressOf(id, tenant))?.position ?? 0;

const hasNext = ({ documents }: Run, id: string): boolean =>
  documents.read(controlOf(id))?.next !== undefined;

const projectEagerly = (run: Run, id: string, tenant: number, upTo: number): Steps<boolean> => {
  const before = run.documents.read(progressOf(id, tenant));
  const after = run.isMistaken('alone') ? upTo - 1 : (before?.position ?? 0);
  const events = eventsOf(run, tenant, after, upTo);
  return advance(run, id, [{ tenant, before, after: afterEvents(run, before, events) }]);
};

/** Whether a write is shown: in a set that has no successor after the progress was read. False: it is pending. */
function* show(run: Run, tenant: number, position: number): Steps<boolean> {
  for (let tries = 0; tries < 40; tries += 1) {
    const id = yield* findLive(run);
    if (id === undefined) return false;
    yield;
    const progress = run.documents.read(progressOf(id, tenant));
    const isThere = (progress?.position ?? 0) >= position;
    if (isThere && !hasNext(run, id)) return true;
    if (isThere) continue;
    if (progress?.parked !== undefined) return false;
    if (!(yield* projectEagerly(run, id, tenant, position))) continue;
    run.counts.eager += 1;
    if (positionIn(run, id, tenant) >= position && !hasNext(run, id)) return true;
  }
  return false;
}

/** Appends, projects its own tenant, and answers. */
const writer: Process = function* (run) {
  for (;;) {
    const tenant = run.pick(TENANTS);
    yield;
    const position = append(run, tenant, run.random() < BAD_APPENDED);
    yield;
    if (yield* show(run, tenant, position)) {
      run.answered[tenant] = Math.max(run.answered[tenant] as number, position);
      run.counts.answered += 1;
    }
    yield;
  }
};

/** Appends, and projects nothing. */
const reporter: Process = function* (run) {
  for (;;) {
    yield* wait(run, 30);
    append(run, run.pick(TENANTS), run.random() < BAD_REPORTED);
  }
};

/** Mends what is bad, and applies what waits, a part in each commit: the last one frees the tenant. */
const operator: Process = function* (run) {
  const { read } = run.documents;
  for (;;) {
    yield* wait(run, 20);
    const id = yield* findLive(run);
    const tenant = run.pick(TENANTS);
    const before = id === undefined ? undefined : read(progressOf(id, tenant));
    if (id === undefined || before?.parked === undefined) continue;
    run.mended.add(before.parked);
    yield;
    const readUpTo = Math.max(read(controlOf(id))?.to ?? 0, before.parked);
    yield;
    const events = eventsOf(run, tenant, before.position, readUpTo);
    const some = events.slice(0, 1 + run.pick(3));
    yield;
    const applied = afterEvents(run, before, some);
    const isFreed = applied.parked !== undefined || some.length === events.length;
    const after = isFreed ? applied : { ...applied, parked: before.parked };
    yield* advance(run, id, [{ tenant, before, after, readUpTo }]);
  }
};

const nameFirst = function* (run: Run): Steps {
  const id = createSet(run);
  yield;
  const isFirst = yield* run.documents.transaction((read) =>
    read(ROOT) === undefined
      ? [
          [ROOT, { live: id }],
          [controlOf(id), read(controlOf(id))],
        ]
      : undefined,
  );
  if (isFirst || run.documents.read(ROOT)?.live === id) run.linked.add(id);
};

/** Applies the next events of the log, whoever's they are, and moves `to`. */
function* follow(run: Run, id: string): Steps {
  const { read } = run.documents;
  const to = read(controlOf(id))?.to ?? 0;
  const upTo = Math.min(run.log.length, to + 1 + run.pick(6));
  const tenants = [...new Set(run.log.slice(to, upTo).map(({ tenant }) => tenant))];
  yield;
  const found = tenants.map((tenant) => ({ tenant, before: read(progressOf(id, tenant)) }));
  yield;
  const changes = found.map(({ tenant, before }) => {
    const events = eventsOf(run, tenant, before?.position ?? 0, upTo);
    const isDone = before?.parked !== undefined || events.length === 0;
    return { tenant, before, after: isDone ? undefined : afterEvents(run, before, events) };
  });
  if (yield* advance(run, id, changes, upTo)) run.counts.followed += 1;
}

const mayRemove = (run: Run, read: Read, id: string): boolean => {
  const control = read(controlOf(id));
  if (control === undefined || control.removed) return false;
  const { next, leftAt = 0, renewedAt } = control;
  const grace = next !== undefined && run.isMistaken('eager') ? 0 : run.grace;
  if (run.now - (next === undefined ? renewedAt : leftAt) <= grace) return false;
  for (let at = read(ROOT)?.live; at !== undefined; at = read(controlOf(at))?.next) {
    const passed = read(controlOf(at));
    if (at === id || passed === undefined || passed.removed) return false;
  }
  return true;
};

const setsIn = ({ documents }: Run): readonly string[] =>
  documents
    .names()
    .filter((name) => name.startsWith('set '))
    .map((name) => name.slice('set '.length));

/** Marks one set, and removes it. */
function* removeOne(run: Run): Steps {
  const { read, put, remove, names, transaction } = run.documents;
  const marked = (id: string) => ({ ...(read(controlOf(id)) as SetControl), removed: true as const });
  for (const id of setsIn(run)) {
    if (run.isMistaken('unmarked')) {
      const may = mayRemove(run, read, id);
      yield;
      if (!may || read(controlOf(id)) === undefined) continue;
      put(controlOf(id), marked(id));
    } else {
      yield* transaction((at) => (mayRemove(run, at, id) ? [[controlOf(id), marked(id)]] : undefined));
      if (read(controlOf(id))?.removed !== true) continue;
    }
    yield;
    for (const name of names()) if (name.split(' ')[1] === id) remove(name);
    run.counts.removals += 1;
    return;
  }
}

const server: Process = function* (run) {
  if (run.documents.read(ROOT) === undefined) yield* nameFirst(run);
  for (;;) {
    const id = yield* findLive(run);
    if (id === undefined) {
      yield;
      continue;
    }
    yield* follow(run, id);
    yield* removeOne(run);
  }
};

/** Nobody else writes to a set that is being built. False: it is gone. */
const build = (run: Run, id: string, upTo: number): boolean => {
  const { read, put } = run.documents;
  const control = read(controlOf(id));
  if (control === undefined || control.removed) return false;
  const to = Math.max(control.to, upTo);
  let { marks } = control;
  for (let tenant = 0; tenant < TENANTS; tenant += 1) {
    const before = read(progressOf(id, tenant));
    const isParked = before?.parked !== undefined;
    if (isParked && !run.mended.has(before.parked)) continue;
    const after = afterEvents(run, before, eventsOf(run, tenant, before?.position ?? 0, to));
    marks += Number(after.parked !== undefined) - Number(isParked);
    put(progressOf(id, tenant), after);
  }
  put(controlOf(id), { ...control, to, renewedAt: run.now, marks });
  return true;
};

const builder: Process = function* (run) {
  const { read, put } = run.documents;
  if (read(ROOT) === undefined) return;
  const built = createSet(run);
  const keepUp = (upTo: number): boolean => build(run, built, upTo);
  for (let number = 0; number < 60; number += 1) {
    if (!keepUp(run.log.length)) return;
    yield* wait(run, 4);
    const former = yield* findLive(run);
    if (former === undefined || former === built) return;
    if (!(yield* succeed(run, former, { builder: built, number }, keepUp))) continue;
    run.linked.add(built);
    run.counts.switches += 1;
    yield;
    if (read(ROOT)?.live === former) put(ROOT, { live: built });
    return;
  }
};

/** A look at the chain that requests of one instance share. */
interface Look {
  readonly at: number;
  isSent: boolean;
  isDone: boolean;
  result: string | undefined;
}

/** Only requests that arrived before a look was sent may share it. */
const sharedLooks = () => {
  let flying: Look | undefined;
  return function* (run: Run): Steps<string | undefined> {
    if (flying !== undefined && (!flying.isSent || run.isMistaken('joined'))) {
      const joined = flying;
      while (!joined.isDone) {
        if (run.now - joined.at > 300) return yield* findLive(run);
        yield;
      }
      return joined.result;
    }
    const mine: Look = { at: run.now, isSent: false, isDone: false, result: undefined };
    flying = mine;
    yield;
    mine.isSent = true;
    mine.result = yield* findLive(run);
    yield* wait(run, 4);
    mine.isDone = true;
    if (flying === mine) flying = undefined;
    return mine.result;
  };
};

/** The document and the control state of the set that was live last, in either order. Undefined: it is not live. */
function* readKnown(run: Run, id: string, tenant: number, early?: number): Steps<number | undefined> {
  const isFirst = run.random() < 0.5;
  const position = (): number => early ?? positionIn(run, id, tenant);
  const before = isFirst ? position() : undefined;
  if (isFirst) yield* wait(run, 4);
  const control = run.documents.read(controlOf(id));
  if (control === undefined || control.removed || control.next !== undefined) return undefined;
  if (before !== undefined) return before;
  yield;
  return position();
}

/** A request sees all that was answered, and all that another request saw, before it began. */
const readerOf = (look: ReturnType<typeof sharedLooks>): Process =>
  function* (run) {
    let known: string | undefined;
    for (;;) {
      const tenant = run.pick(TENANTS);
      let early: number | undefined;
      if (run.isMistaken('early') && known !== undefined) {
        early = positionIn(run, known, tenant);
        yield* wait(run, 20);
      }
      const must = Math.max(run.answered[tenant] as number, run.seen[tenant] as number);
      const began = run.now;
      const isLate = (): boolean => run.now - began > run.grace / 2;
      yield;
      let shown: number | undefined;
      if (known !== undefined && run.random() < run.remembers)
        shown = yield* readKnown(run, known, tenant, early);
      if (shown === undefined) {
        known = yield* look(run);
        yield* wait(run, 6);
        if (known === undefined || isLate()) continue;
        if (run.documents.read(controlOf(known)) === undefined)
          return run.fail(`a request read ${known}, which was removed under it`);
        shown = positionIn(run, known, tenant);
      }
      // It would be answered with an error.
      if (isLate()) continue;
      if (shown < must) run.fail(`a request saw tenant ${tenant} at ${shown}, after ${must} was shown`);
      run.seen[tenant] = Math.max(run.seen[tenant] as number, shown);
      yield;
    }
  };

/** Everything of a tenant up to its position is applied once, in order. */
const checkProgress = (run: Run, name: string, { applied, position }: TenantProgress): void => {
  const tenant = Number(name.split(' ')[2]);
  const right = eventsOf(run, tenant, 0, position).map((event) => event.position);
  if (applied.length !== right.length || applied.some((one, i) => one !== right[i]))
    run.fail(`${name} has applied ${applied.slice(-6).join()} at last`);
};

/** Everything up to `to` is applied, or waits behind a mark, and marks are counted. */
const checkSet = (run: Run, id: string, { to, marks }: SetControl): void => {
  let parked = 0;
  for (let tenant = 0; tenant < TENANTS; tenant += 1) {
    const progress = run.documents.read(progressOf(id, tenant));
    const due = eventsOf(run, tenant, 0, to).at(-1)?.position ?? 0;
    if (progress?.parked !== undefined) parked += 1;
    else if ((progress?.position ?? 0) < due)
      run.fail(`"to" of ${id} is ${to}, but tenant ${tenant} lacks ${due}`);
  }
  if (parked !== marks) run.fail(`${id} parks ${parked} tenants, but says ${marks}`);
};

const check = (run: Run): void => {
  const { read, names } = run.documents;
  for (const name of names())
    if (name.startsWith('progress ')) checkProgress(run, name, read(name) as TenantProgress);
  const controls = setsIn(run).map((id) => [id, read(controlOf(id)) as SetControl] as const);
  for (const [id, control] of controls) if (control.removed !== true) checkSet(run, id, control);
  const ends = controls.filter(
    ([id, control]) => run.linked.has(id) && control.next === undefined && control.removed !== true,
  );
  if (ends.length > 1) run.fail(`two live sets: ${ends.map(([id]) => id).join()}`);
};

/** One run of all processes, perhaps with a mistake. */
export const simulate = (seed: number, mistake?: Mistake) => {
  const run = newRun(seed, mistake);
  const { pick, random } = run;
  const reader = readerOf(sharedLooks());
  const kinds: readonly Process[] = [
    server,
    server,
    builder,
    builder,
    writer,
    writer,
    writer,
    reporter,
    operator,
    operator,
    reader,
    reader,
    reader,
  ];
  const running = kinds.map((kind) => kind(run));
  const asleepUntil = kinds.map(() => 0);
  for (; run.now < STEPS && run.failure === undefined; run.now += 1) {
    const i = pick(kinds.length);
    if (random() < 0.01) asleepUntil[i] = run.now + pick(3 * run.grace);
    if ((asleepUntil[i] as number) > run.now) continue;
    const isKilled = random() < 0.004;
    if (isKilled || running[i]?.next().done === true) running[i] = (kinds[i] as Process)(run);
    if (run.now % 97 === 0) check(run);
  }
  check(run);
  const { failure, counts, documents } = run;
  return { failure, counts: { ...counts, conflicts: documents.conflicts() } };
};
