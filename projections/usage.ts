import { factOperations, type EntityFactType, type FactOperation, type Recorded } from '../src/domain/events';
import { canonicalTime } from '../src/domain/texts';
import {
  change,
  changeTogether,
  type Change,
  type Document,
  type Projector,
  type Reader,
  type Reducers,
} from './projector';

/**
 * The usage of a tenant. A token counts if the latest of its created and deleted facts, by their own times, is a
 * creation (on a tie, the deletion wins), in whatever order they arrive. There is also a document for each month in
 * which a token was active, next to that of the token. So facts that arrive late or out of order give the same result.
 * A second copy of a fact changes nothing: one without a time of its own would otherwise count at another time. It is
 * known by its row in the log, which `logs` adds after this.
 */
interface TokenDocument {
  readonly created_at?: string;
  readonly deleted_at?: string;
}

interface TypeDocument {
  readonly type: string;
  readonly count: number;
  readonly last_created_at?: string;
}

interface MonthDocument {
  readonly active: number;
}

interface PlanDocument {
  readonly included_monthly_active_tokens: number;
}

/** Reactors and Proxies are not tokens. */
const TOKEN_TYPES = ['Token', 'Card', 'Bank'] as const;
const ACTIVE: ReadonlySet<FactOperation> = new Set(['Created', 'Read', 'Used']);
const PLAN = 'plan';
const MAX_TYPES = 1_000;

type TokenFact = Extract<Recorded, { readonly type: EntityFactType }>;

const ownTime = (event: TokenFact): string => canonicalTime(event.data.occurredAt ?? event.at);

const latest = (known: string | undefined, time: string): string =>
  known === undefined || time > known ? time : known;

const isAlive = (token: TokenDocument | undefined): boolean =>
  token?.created_at !== undefined && (token.deleted_at === undefined || token.created_at > token.deleted_at);

const seen = (
  token: TokenDocument | undefined,
  operation: FactOperation,
  time: string,
): TokenDocument | undefined => {
  if (operation === 'Created') return { ...token, created_at: latest(token?.created_at, time) };
  return operation === 'Deleted' ? { ...token, deleted_at: latest(token?.deleted_at, time) } : token;
};

const tokenFact =
  (type: string, operation: FactOperation) =>
  (event: TokenFact): readonly Change[] => {
    const time = ownTime(event);
    const month = time.slice(0, 7);
    const token = `${type}:${event.data.entityId}`;
    const touches = [
      { collection: 'log_rows', key: event.id },
      { collection: 'usage_tokens', key: token },
      { collection: 'usage_tokens', key: `${token}:${month}` },
      { collection: 'usage_types', key: type },
      { collection: 'usage_months', key: month },
    ];
    return [
      changeTogether(touches, (documents) => {
        const [row, tokenNow, tokenMonth, typeNow, monthNow] = documents;
        if (row !== undefined) return documents;
        const before = tokenNow as TokenDocument | undefined;
        const after = seen(before, operation, time);
        const known = (typeNow as TypeDocument | undefined) ?? { type, count: 0 };
        const count = known.count + Number(isAlive(after)) - Number(isAlive(before));
        const created =
          operation === 'Created' ? { last_created_at: latest(known.last_created_at, time) } : {};
        const isCounted = ACTIVE.has(operation) && tokenMonth === undefined;
        const active = (monthNow as MonthDocument | undefined)?.active ?? 0;
        return [
          row,
          after as Document | undefined,
          isCounted ? {} : tokenMonth,
          { ...known, count, ...created },
          isCounted ? { active: active + 1 } : monthNow,
        ];
      }),
    ];
  };

const tokenFacts = Object.fromEntries(
  TOKEN_TYPES.flatMap((entity) =>
    factOperations.map((operation) => [`${entity}${operation}`, tokenFact(entity.toLowerCase(), operation)]),
  ),
) as Reducers;

const plan = (included_monthly_active_tokens: number): readonly Change[] => [
  change<PlanDocument>('usage_plan', PLAN, () => ({ included_monthly_active_tokens })),
];

export const usage: Projector = {
  name: 'usage',
  version: 2,
  streams: ['tenant', 'activity'],
  collections: [
    { name: 'usage_tokens', indexes: {} },
    { name: 'usage_types', indexes: {} },
    { name: 'usage_months', indexes: {} },
    { name: 'usage_plan', indexes: {} },
  ],
  on: {
    ...tokenFacts,
    TenantCreated: (event) => plan(event.data.includedMonthlyActiveTokens),
    TenantPlanChanged: (event) => plan(event.data.includedMonthlyActiveTokens),
  },
};

export interface UsageReport {
  readonly token_report: {
    readonly metrics_by_type: Readonly<
      Record<string, { readonly count: number; readonly last_created_at?: string }>
    >;
    readonly included_monthly_active_tokens: number;
    readonly monthly_active_tokens: number;
  };
}

/** `at` determines the current month. */
export const reportUsage = async (reader: Reader, tenantId: string, at: string): Promise<UsageReport> => {
  const [types, month, tenantPlan] = (await Promise.all([
    reader.find(tenantId, 'usage_types', { limit: MAX_TYPES }),
    reader.get(tenantId, 'usage_months', at.slice(0, 7)),
    reader.get(tenantId, 'usage_plan', PLAN),
  ])) as unknown as readonly [readonly TypeDocument[], MonthDocument | undefined, PlanDocument | undefined];
  return {
    token_report: {
      metrics_by_type: Object.fromEntries(types.map(({ type, ...metrics }) => [type, metrics])),
      included_monthly_active_tokens: tenantPlan?.included_monthly_active_tokens ?? 0,
      monthly_active_tokens: month?.active ?? 0,
    },
  };
};
