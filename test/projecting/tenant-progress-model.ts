import { randomFrom } from '../support/random';
import { modelDocuments, type Name, type Read, type Steps, type Write } from './model-documents';

/**
 * The protocol of sets in which every tenant has a progress of its own, as a model without a store: who may commit what,
 * when, and under which conditions. `tenant-progress-processes` has those who take part, and the properties.
 */
export const TENANTS = 3;
const GATES = 3;
/** A closed gate is opened again if its builder was silent for so long. */
const SILENT_STEPS = 60;

/** Mistakes that each break a property. */
export const MISTAKES = {
  skew: 'a commit does not write the gate that it goes through',
  behind: 'a successor is named that lacks what its predecessor has applied',
  thaw: 'a switch does not write the gates that it has closed',
  lost: 'a commit does not look whether its tenants have moved',
  alone: 'whoever appends applies only its own event',
  leap: '"to" moves past a tenant that was overtaken',
  freed: 'a tenant is freed although "to" has moved past what was read',
  flag: 'the second tenant that is parked is not counted',
  joined: 'a request joins a look that was sent before it arrived',
  early: 'a document is read before its request has arrived',
  root: 'the root is moved although another process has moved it',
  eager: 'a set is removed as soon as it has a successor',
  unmarked: 'whoever removes a set looks, and marks it later',
} as const;

export type Mistake = keyof typeof MISTAKES;

export interface SetControl {
  readonly to: number;
  readonly marks: number;
  readonly renewedAt: number;
  readonly next?: string;
  readonly leftAt?: number;
  readonly removed?: true;
}

export interface Gate {
  readonly furthest: number;
  /** The attempt to switch that has closed it. */
  readonly closedBy?: Attempt;
}

export interface Attempt {
  readonly builder: string;
  readonly number: number;
}

export interface TenantProgress {
  readonly position: number;
  /** Everything that was ever applied: more than a real progress says. */
  readonly applied: readonly number[];
  /** The event that could not be applied. */
  readonly parked?: number;
}

interface LoggedEvent {
  readonly tenant: number;
  readonly position: number;
  readonly isBad: boolean;
}

export const ROOT: Name<{ readonly live: string }> = 'root';
export const controlOf = (id: string): Name<SetControl> => `set ${id}`;
export const gatesOf = (id: string): readonly Name<Gate>[] =>
  Array.from({ length: GATES }, (_, gate) => `gate ${id} ${gate}`);
export const progressOf = (id: string, tenant: number): Name<TenantProgress> => `progress ${id} ${tenant}`;

const counts = () => ({
  switches: 0,
  removals: 0,
  answered: 0,
  eager: 0,
  followed: 0,
  parked: 0,
  freed: 0,
  reopened: 0,
});

/** What all processes of one run share. */
export const newRun = (seed: number, mistake?: Mistake) => {
  const random = randomFrom(seed);
  const pick = (n: number): number => Math.floor(random() * n);
  const zeros = (): number[] => Array<number>(TENANTS).fill(0);
  const run = {
    random,
    pick,
    /** For so long, a set can be read after it was superseded. */
    grace: 60 + pick(100),
    /** How often a request begins with the set that was live last. */
    remembers: random() < 0.5 ? 0.8 : 0,
    documents: modelDocuments(random),
    log: [] as LoggedEvent[],
    mended: new Set<number>(),
    now: 0,
    ids: 0,
    /** Sets that were live once. */
    linked: new Set<string>(),
    /** The last position of each tenant that was answered as shown, and that was seen. */
    answered: zeros(),
    seen: zeros(),
    counts: counts(),
    failure: undefined as string | undefined,
    isMistaken: (one: Mistake): boolean => one === mistake,
    fail: (what: string): void => {
      run.failure ??= `seed ${seed}, step ${run.now}: ${what}`;
    },
  };
  return run;
};

export type Run = ReturnType<typeof newRun>;

export const append = ({ log }: Run, tenant: number, isBad: boolean): number => {
  const position = log.length + 1;
  log.push({ tenant, position, isBad });
  return position;
};

export const eventsOf = ({ log }: Run, tenant: number, after: number, upTo: number): readonly LoggedEvent[] =>
  log.filter((event) => event.tenant === tenant && event.position > after && event.position <= upTo);

/** The progress after these events, or before the first bad one. */
export const afterEvents = (
  { mended }: Run,
  before: TenantProgress | undefined,
  events: readonly LoggedEvent[],
): TenantProgress => {
  const { position: start = 0, applied = [] } = before ?? {};
  const stop = events.findIndex(({ isBad, position }) => isBad && !mended.has(position));
  const good = (stop < 0 ? events : events.slice(0, stop)).map(({ position }) => position);
  const parked = events[stop]?.position;
  return {
    position: good.at(-1) ?? start,
    applied: [...applied, ...good],
    ...(parked === undefined ? {} : { parked }),
  };
};

export const createSet = (run: Run): string => {
  const id = `s${(run.ids += 1)}`;
  run.documents.put(controlOf(id), { to: 0, renewedAt: run.now, marks: 0 });
  for (const gate of gatesOf(id)) run.documents.put(gate, { furthest: 0 });
  return id;
};

/** Moves the root, if nobody else has. */
const moveRoot = (run: Run, from: string | undefined, to: string): void => {
  const { read, put } = run.documents;
  if (read(ROOT)?.live === from || run.isMistaken('root')) put(ROOT, { live: to });
};

/** The set at the end of the chain, as one look after the other sees it. */
export function* findLive(run: Run): Steps<string | undefined> {
  const { read } = run.documents;
  let root = read(ROOT)?.live;
  for (let id = root; id !== undefined;) {
    yield;
    const control = read(controlOf(id));
    if (control === undefined || control.removed) {
      const now = read(ROOT)?.live;
      if (now === root) {
        run.fail(`the root leads to ${id}, which is gone`);
        return undefined;
      }
      id = root = now;
      continue;
    }
    if (control.next === undefined) return id;
    yield;
    moveRoot(run, root, control.next);
    id = root = control.next;
  }
  return undefined;
}

/** What one commit makes of one tenant. */
export interface TenantChange {
  readonly tenant: number;
  readonly before: TenantProgress | undefined;
  /** Undefined: nothing is written. */
  readonly after: TenantProgress | undefined;
  /** Whoever frees a tenant has read its events up to here. */
  readonly readUpTo?: number;
}

/** A gate that its builder has left closed is opened again. */
function* openAgain(run: Run, id: string, gate: Name<Gate>): Steps {
  const { read, put, versionOf } = run.documents;
  const version = versionOf(gate);
  const { furthest, closedBy } = read(gate) as Gate;
  const builder = read(controlOf(closedBy?.builder ?? ''));
  if (builder !== undefined && run.now - builder.renewedAt <= SILENT_STEPS) return;
  if (read(controlOf(id))?.next !== undefined) return;
  yield;
  if (versionOf(gate) !== version) return;
  put(gate, { furthest });
  run.counts.reopened += 1;
}

const isOvertaken = (
  run: Run,
  control: SetControl,
  now: TenantProgress | undefined,
  change: TenantChange,
) => {
  const { before, after, readUpTo = Infinity } = change;
  const hasMoved = (now?.position ?? 0) !== (before?.position ?? 0) || now?.parked !== before?.parked;
  if (hasMoved && !run.isMistaken('lost')) return true;
  const isFreed = before?.parked !== undefined && after !== undefined && after.parked === undefined;
  return isFreed && control.to > readUpTo && !run.isMistaken('freed');
};

/** How the number of parked tenants changes. */
const countMarks = (run: Run, marks: number, { before, after }: TenantChange): number => {
  if (after === undefined || (before?.parked === undefined) === (after.parked === undefined)) return marks;
  if (after.parked === undefined) {
    run.counts.freed += 1;
    return marks - 1;
  }
  run.counts.parked += 1;
  return run.isMistaken('flag') && marks > 0 ? marks : marks + 1;
};

const commitTo = (
  run: Run,
  read: Read,
  {
    id,
    gate,
    changes,
    to = 0,
  }: { id: string; gate: Name<Gate>; changes: readonly TenantChange[]; to?: number },
): readonly Write[] | undefined => {
  const [control, passed] = [read(controlOf(id)), read(gate)];
  if (control === undefined || control.removed || control.next !== undefined) return undefined;
  if (passed === undefined || passed.closedBy !== undefined) return undefined;
  const unmoved = changes.filter(
    (change) => !isOvertaken(run, control, read(progressOf(id, change.tenant)), change),
  );
  const writes: Write[] = [];
  let { marks } = control;
  let { furthest } = passed;
  for (const change of unmoved) {
    if (change.after === undefined) continue;
    writes.push([progressOf(id, change.tenant), change.after]);
    furthest = Math.max(furthest, change.after.position);
    marks = countMarks(run, marks, change);
  }
  const isWhole = unmoved.length === changes.length || run.isMistaken('leap');
  const moved = isWhole ? Math.max(to, control.to) : control.to;
  if (marks !== control.marks || moved !== control.to)
    writes.push([controlOf(id), { ...control, marks, to: moved }]);
  if (writes.length === 0) return undefined;
  return run.isMistaken('skew') ? writes : [...writes, [gate, { furthest: Math.max(furthest, moved) }]];
};

/** Commits what becomes of some tenants, through one gate: of those whose progress is still the one before. */
export function* advance(
  run: Run,
  id: string,
  changes: readonly TenantChange[],
  to?: number,
): Steps<boolean> {
  const gate = gatesOf(id)[run.pick(GATES)] as Name<Gate>;
  const found = run.documents.read(gate);
  if (found === undefined) return false;
  if (found.closedBy !== undefined) {
    yield* openAgain(run, id, gate);
    return false;
  }
  const asked = { id, gate, changes, ...(to === undefined ? {} : { to }) };
  return yield* run.documents.transaction((read) => commitTo(run, read, asked));
}

/** The successor would park a tenant at a place that its predecessor has shown. */
const wouldHide = (read: Read, former: string, built: string): boolean =>
  Array.from({ length: TENANTS }, (_, tenant) => tenant).some((tenant) => {
    const mine = read(progressOf(built, tenant));
    const shown = read(progressOf(former, tenant))?.position ?? 0;
    return mine?.parked !== undefined && mine.position < shown;
  });

const linkTo = (run: Run, read: Read, former: string, attempt: Attempt): readonly Write[] | undefined => {
  const { builder: built } = attempt;
  const [left, mine] = [read(controlOf(former)), read(controlOf(built))];
  if (left === undefined || left.next !== undefined || left.removed) return undefined;
  if (mine === undefined || mine.removed) return undefined;
  const gates = gatesOf(former).map((name) => [name, read(name)] as const);
  const isClosed = gates.every(([, gate]) => gate?.closedBy === attempt);
  if (!isClosed && !run.isMistaken('skew')) return undefined;
  const furthest = Math.max(left.to, ...gates.map(([, gate]) => gate?.furthest ?? Infinity));
  if (mine.to < furthest && !run.isMistaken('behind')) return undefined;
  if (wouldHide(read, former, built)) return undefined;
  const controls: readonly Write[] = [
    [controlOf(former), { ...left, next: built, leftAt: run.now }],
    [controlOf(built), mine],
  ];
  return run.isMistaken('thaw') || run.isMistaken('skew') ? controls : [...controls, ...gates];
};

/** Closes all gates, applies everything that went through them, and names the successor. */
export function* succeed(
  run: Run,
  former: string,
  attempt: Attempt,
  follow: (upTo: number) => boolean,
): Steps<boolean> {
  const { read, put } = run.documents;
  for (const name of gatesOf(former)) {
    const gate = read(name);
    if (gate !== undefined && gate.closedBy === undefined) put(name, { ...gate, closedBy: attempt });
    yield;
  }
  const furthest = Math.max(0, ...gatesOf(former).map((name) => read(name)?.furthest ?? 0));
  yield;
  const wanted = Math.max(furthest, read(controlOf(former))?.to ?? 0);
  if (!follow(run.isMistaken('behind') ? 0 : wanted)) return false;
  yield;
  const isDone = yield* run.documents.transaction((snapshot) => linkTo(run, snapshot, former, attempt));
  if (isDone || read(controlOf(former))?.next === attempt.builder) return true;
  for (const name of gatesOf(former)) {
    const gate = read(name);
    if (gate?.closedBy === attempt && read(controlOf(former))?.next === undefined)
      put(name, { furthest: gate.furthest });
    yield;
  }
  return false;
}
