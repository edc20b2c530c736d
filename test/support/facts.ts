import { randomUUID } from 'node:crypto';
import { randomFrom, type Random } from './random';

export interface Fact {
  readonly id: string;
  readonly tenant_id: string;
  readonly type: string;
  readonly data: {
    readonly entityId: string;
    readonly occurredAt?: string;
    readonly [more: string]: unknown;
  };
}

export const aFact = (tenantId: string, more: Partial<Fact> = {}): Fact => ({
  id: randomUUID(),
  tenant_id: tenantId,
  type: 'TokenCreated',
  data: { entityId: 'tok_1' },
  ...more,
});

const TYPES = ['Token', 'Card', 'Bank', 'Reactor', 'Proxy'];
const OPERATIONS = ['Created', 'Read', 'Used', 'Updated', 'Deleted'];
const HOUR_MS = 3_600_000;

const picked = <T>(from: readonly T[], random: Random): T => from[Math.floor(random() * from.length)] as T;

/** Facts of every kind about a few entities, at hours of the last hundred days, many of them at the same hour. */
export const manyFacts = (tenants: readonly string[], count: number, seed: number): readonly Fact[] => {
  const random = randomFrom(seed);
  const now = Date.now();
  return Array.from({ length: count }, () => {
    const entityId = `e${Math.floor(random() * 100)}`;
    const occurredAt = new Date(now - Math.floor(random() * 2_400) * HOUR_MS).toISOString();
    const type = `${picked(TYPES, random)}${picked(OPERATIONS, random)}`;
    return aFact(picked(tenants, random), { type, data: { entityId, occurredAt } });
  });
};

export const textOf = (lines: readonly (Fact | string)[]): string =>
  lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');

/** The expected usage report, counted naively: fact by fact, entity by entity. All facts name their time. */
export const countedUsage = (facts: readonly Fact[], tenantId: string, at = new Date().toISOString()) => {
  const own = facts.filter((fact) => fact.tenant_id === tenantId);
  const timesOf = (kind: string, operation: string, entityId?: string): readonly string[] =>
    own
      .filter(
        ({ type, data }) => type === `${kind}${operation}` && (entityId ?? data.entityId) === data.entityId,
      )
      .map(({ data }) => new Date(data.occurredAt ?? '').toISOString())
      .toSorted();
  const kinds = ['Bank', 'Card', 'Token'].filter((kind) => own.some(({ type }) => type.startsWith(kind)));
  const entitiesOf = (kind: string) =>
    new Set(own.filter(({ type }) => type.startsWith(kind)).map(({ data }) => data.entityId));
  const isAlive = (kind: string, entityId: string): boolean =>
    (timesOf(kind, 'Created', entityId).at(-1) ?? '') > (timesOf(kind, 'Deleted', entityId).at(-1) ?? '');
  const active = new Set(
    own
      .filter(({ type }) => /^(Bank|Card|Token)(Created|Read|Used)$/.test(type))
      .filter(({ data }) => new Date(data.occurredAt ?? '').toISOString().slice(0, 7) === at.slice(0, 7))
      .map(({ type, data }) => `${type.slice(0, 4)} ${data.entityId}`),
  );
  const metrics = kinds.map((kind) => {
    const created = timesOf(kind, 'Created').at(-1);
    const count = [...entitiesOf(kind)].filter((entityId) => isAlive(kind, entityId)).length;
    return [kind.toLowerCase(), { count, ...(created === undefined ? {} : { last_created_at: created }) }];
  });
  return {
    token_report: {
      metrics_by_type: Object.fromEntries(metrics),
      included_monthly_active_tokens: 0,
      monthly_active_tokens: active.size,
    },
  };
};
