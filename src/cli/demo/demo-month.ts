import { randomBytes, randomUUID } from 'node:crypto';
import { DAY_MS } from '../../async/clock';
import type { FactEntity, FactOperation } from '../../domain/facts';

/** A reported fact, as a line that `ingest` takes. */
export interface DemoFact {
  readonly id: string;
  readonly tenant_id: string;
  readonly type: string;
  readonly actor: { readonly type: 'application'; readonly id: string };
  readonly trace_id: string;
  readonly data: { readonly entityId: string; readonly occurredAt: string };
}

/** The Applications that report, by what they do. */
export interface DemoActors {
  readonly creating: string;
  readonly using: string;
  readonly reading: string;
}

const DAYS = 30;
const FACTS_ON_A_WORKDAY = 60;
const WEEKEND = 0.3;
/** The last day has this many times as many as the first. */
const GROWTH = 1.8;

/** What happens, and how often in a hundred. */
const KINDS: readonly (readonly [FactEntity, FactOperation, number])[] = [
  ['Token', 'Created', 24],
  ['Token', 'Read', 20],
  ['Token', 'Used', 14],
  ['Token', 'Updated', 3],
  ['Token', 'Deleted', 3],
  ['Card', 'Created', 9],
  ['Card', 'Used', 10],
  ['Card', 'Read', 4],
  ['Bank', 'Created', 2],
  ['Bank', 'Used', 3],
  ['Proxy', 'Used', 5],
  ['Reactor', 'Used', 3],
];

const PREFIXES: Readonly<Record<FactEntity, string>> = {
  Token: 'tok',
  Card: 'card',
  Bank: 'bank',
  Reactor: 'reactor',
  Proxy: 'proxy',
};

/** From 0 up to 1. */
export type Random = () => number;

/** Mulberry32: a month of the same seed always has the same shape. */
export const randomFrom = (seed: number): Random => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

const kindOf = (random: Random): readonly [FactEntity, FactOperation] => {
  let left = random() * KINDS.reduce((sum, [, , share]) => sum + share, 0);
  const [entity, operation] = KINDS.find(([, , share]) => (left -= share) < 0) ?? ['Token', 'Read'];
  return [entity, operation];
};

/** The times of one day that are over, mostly around noon (UTC). */
const timesOf = (midnight: number, day: number, now: number, random: Random): readonly number[] => {
  const weekday = new Date(midnight).getUTCDay();
  const isWeekend = weekday === 0 || weekday === 6;
  const growth = 1 + (GROWTH - 1) * (day / (DAYS - 1));
  const count = Math.round(FACTS_ON_A_WORKDAY * (isWeekend ? WEEKEND : 1) * growth * (0.85 + random() * 0.3));
  return Array.from({ length: count }, () => {
    const hour = 4 + (random() + random() + random()) * (16 / 3);
    return Math.floor(midnight + hour * (DAY_MS / 24));
  })
    .filter((time) => time < now)
    .toSorted((a, b) => a - b);
};

/** Thirty days of facts about one tenant that follow from one another, oldest first. */
export const demoMonth = (
  tenantId: string,
  actors: DemoActors,
  now: number,
  random: Random,
): readonly DemoFact[] => {
  const alive: Record<FactEntity, string[]> = { Token: [], Card: [], Bank: [], Reactor: [], Proxy: [] };
  const actorOf = (operation: FactOperation): string => {
    if (operation === 'Created') return actors.creating;
    return operation === 'Read' ? actors.reading : actors.using;
  };
  const factAt = (time: number): DemoFact => {
    const [entity, wanted] = kindOf(random);
    const known = alive[entity];
    const operation = known.length === 0 ? 'Created' : wanted;
    const at = Math.floor(random() * known.length);
    const entityId =
      operation === 'Created'
        ? `${PREFIXES[entity]}_${randomBytes(6).toString('hex')}`
        : (known[at] as string);
    if (operation === 'Created') known.push(entityId);
    if (operation === 'Deleted') known.splice(at, 1);
    return {
      id: randomUUID(),
      tenant_id: tenantId,
      type: `${entity}${operation}`,
      actor: { type: 'application', id: actorOf(operation) },
      trace_id: randomBytes(8).toString('hex'),
      data: { entityId, occurredAt: new Date(time).toISOString() },
    };
  };
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  return Array.from({ length: DAYS }, (_, day) =>
    timesOf(today - (DAYS - 1 - day) * DAY_MS, day, now, random),
  )
    .flat()
    .map(factAt);
};
