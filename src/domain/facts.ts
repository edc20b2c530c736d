/** What other services did and report: Token, Card, Bank, Reactor and Proxy, each created, read, used, updated, deleted. */
const factEntities = ['Token', 'Card', 'Bank', 'Reactor', 'Proxy'] as const;
export const factOperations = ['Created', 'Read', 'Used', 'Updated', 'Deleted'] as const;

export type FactEntity = (typeof factEntities)[number];
export type FactOperation = (typeof factOperations)[number];
export type EntityFactType = `${FactEntity}${FactOperation}`;

export interface EntityFactData {
  readonly entityId: string;
  /** When it happened, by the reporter's clock. Left out: when it was recorded. */
  readonly occurredAt?: string;
  readonly [more: string]: unknown;
}

export interface ActivityData extends EntityFactData {
  readonly entityType: string;
  readonly operation: string;
  readonly message?: string;
}

/** Facts live in the stream `activity-<tenantId>`. Nothing is decided from them. */
export type FactEvent =
  | { [T in EntityFactType]: { readonly type: T; readonly data: EntityFactData } }[EntityFactType]
  | { readonly type: 'ActivityReported'; readonly data: ActivityData };

export type FactType = FactEvent['type'];

const parts = new Map<string, { readonly entity: FactEntity; readonly operation: FactOperation }>(
  factEntities.flatMap((entity) =>
    factOperations.map((operation) => [`${entity}${operation}`, { entity, operation }] as const),
  ),
);

export const factTypes: readonly FactType[] = [
  ...(parts.keys() as Iterable<EntityFactType>),
  'ActivityReported',
];

export const isFactType = (type: string): type is FactType => type === 'ActivityReported' || parts.has(type);

/** The entity and the operation that an entity fact's name is made of. */
export const partsOf = (type: EntityFactType) => {
  const found = parts.get(type);
  if (found === undefined) throw new Error(`${type} is not a fact about an entity.`);
  return found;
};
