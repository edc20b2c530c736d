/** Facts are what other services report to have done. Each entity is combined with each operation. */
const factEntities = ['Token', 'Card', 'Bank', 'Reactor', 'Proxy'] as const;
export const factOperations = ['Created', 'Read', 'Used', 'Updated', 'Deleted'] as const;

export type FactEntity = (typeof factEntities)[number];
export type FactOperation = (typeof factOperations)[number];
export type EntityFactType = `${FactEntity}${FactOperation}`;

export interface EntityFactData {
  readonly entityId: string;
  /** When it happened, by the reporter's clock. Defaults to when it was recorded. */
  readonly occurredAt?: string;
  readonly [more: string]: unknown;
}

export interface ActivityData extends EntityFactData {
  readonly entityType: string;
  readonly operation: string;
  readonly message?: string;
}

/** Stored in the stream `activity-<tenantId>`. No decision depends on facts. */
export type FactEvent =
  | { [T in EntityFactType]: { readonly type: T; readonly data: EntityFactData } }[EntityFactType]
  | { readonly type: 'ActivityReported'; readonly data: ActivityData };

export type FactType = FactEvent['type'];

const parts = new Map<string, { readonly entity: FactEntity; readonly operation: FactOperation }>(
  factEntities.flatMap((entity) =>
    factOperations.map((operation) => [`${entity}${operation}`, { entity, operation }] as const),
  ),
);

export const entityFactTypes = [...parts.keys()] as readonly EntityFactType[];

export const isFactType = (type: string): type is FactType => type === 'ActivityReported' || parts.has(type);

/** Splits the type of an entity fact into entity and operation. */
export const factPartsOf = (type: EntityFactType) =>
  parts.get(type) as NonNullable<ReturnType<typeof parts.get>>;
