import {
  factOperations,
  type EntityFactType,
  type FactOperation,
  type Recorded,
  type TenantEvent,
} from '../src/domain/events';
import { canonicalTime } from '../src/domain/texts';
import { later } from './key-days';
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
  readonly month: string;
  readonly active: number;
}

/** What the plan includes from the month of a change on. What was decided last is last. */
interface PlanDocument {
  readonly changes: readonly Pick<UsageMonth, 'month' | 'included_monthly_active_tokens'>[];
}

/** Reactors and Proxies are not tokens. */
const TOKEN_TYPES = ['Token', 'Card', 'Bank'] as const;
const ACTIVE: ReadonlySet<FactOperation> = new Set(['Created', 'Read', 'Used']);
const PLAN = 'plan';
const MAX_TYPES = 1_000;

type TokenFact = Extract<Recorded, { readonly type: EntityFactType }>;
type PlanEvent = Extract<TenantEvent, { readonly type: 'TenantCreated' | 'TenantPlanChanged' }>;

export const monthOf = (time: string): string => time.slice(0, 7);

const ownTime = (event: TokenFact): string => canonicalTime(event.data.occurredAt ?? event.at);

const latest = (known: string | undefined, time: string): string => later(known ?? time, time);

const isAlive = (token: TokenDocument | undefined): boolean =>
  token?.created_at !== undefined && (token.deleted_at === undefined || token.created_at > token.deleted_at);

const seen = (token: TokenDocument | undefined, operation: FactOperation, time: string) => {
  if (operation === 'Created') return { ...token, created_at: latest(token?.created_at, time) };
  return operation === 'Deleted' ? { ...token, deleted_at: latest(token?.deleted_at, time) } : token;
};

const tokenFact =
  (type: string, operation: FactOperation) =>
  (event: TokenFact): readonly Change[] => {
    const time = ownTime(event);
    const month = monthOf(time);
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
        const created = operation === 'Created' && { last_created_at: latest(known.last_created_at, time) };
        const isCounted = ACTIVE.has(operation) && tokenMonth === undefined;
        const active = (monthNow as MonthDocument | undefined)?.active ?? 0;
        return [
          row,
          after as Document | undefined,
          isCounted ? {} : tokenMonth,
          { ...known, count, ...created },
          isCounted ? { month, active: active + 1 } : monthNow,
        ];
      }),
    ];
  };

const tokenFacts = Object.fromEntries(
  TOKEN_TYPES.flatMap((entity) =>
    factOperations.map((operation) => [`${entity}${operation}`, tokenFact(entity.toLowerCase(), operation)]),
  ),
) as Reducers;

/** Several changes in a month are one, and what a wrong clock had put into a later month ends with the next change. */
const plan = ({ at, data }: Recorded<PlanEvent>): readonly Change[] => {
  const { includedMonthlyActiveTokens: included_monthly_active_tokens } = data;
  const month = monthOf(at);
  const next = ({ changes }: PlanDocument = { changes: [] }): PlanDocument => {
    const before = changes.filter((earlier) => earlier.month < month);
    return { changes: [...before, { month, included_monthly_active_tokens }] };
  };
  return [change<PlanDocument>('usage_plan', PLAN, next)];
};

export const usage: Projector = {
  name: 'usage',
  version: 3,
  collections: ['usage_tokens', 'usage_types', 'usage_months', 'usage_plan'].map((name) => ({
    name,
    indexes: {},
  })),
  on: { ...tokenFacts, TenantCreated: plan, TenantPlanChanged: plan },
};

/** The tokens that were active in a month, and what the plan included at its end. */
export interface UsageMonth {
  readonly month: string;
  readonly included_monthly_active_tokens: number;
  readonly monthly_active_tokens: number;
}

/** So many months up to the last one, oldest first. */
const monthsUpTo = (last: string, count: number): readonly string[] => {
  const end = Number(last.slice(0, 4)) * 12 + Number(last.slice(5));
  return Array.from({ length: Math.min(count, end) }, (_, i) => {
    const at = end - Math.min(count, end) + i;
    return `${String(Math.floor(at / 12)).padStart(4, '0')}-${String((at % 12) + 1).padStart(2, '0')}`;
  });
};

/** Each of so many months up to the last one, oldest first. */
export const usageByMonth = async (reader: Reader, tenantId: string, last: string, count = 1) => {
  const months = monthsUpTo(last, count);
  const [found, tenantPlan] = (await Promise.all([
    reader.find(tenantId, 'usage_months', { from: months[0] ?? last, upTo: last, limit: count }),
    reader.get(tenantId, 'usage_plan', PLAN),
  ])) as unknown as readonly [readonly MonthDocument[], PlanDocument | undefined];
  const active = new Map(found.map((document) => [document.month, document.active]));
  const includedIn = (month: string) => tenantPlan?.changes.findLast((planned) => planned.month <= month);
  return months.map((month) => ({
    month,
    included_monthly_active_tokens: includedIn(month)?.included_monthly_active_tokens ?? 0,
    monthly_active_tokens: active.get(month) ?? 0,
  }));
};

/** Types as they are now; months up to this one. Without a number, only the last one is meant, and they are not listed. */
export const reportUsage = async (reader: Reader, tenantId: string, month: string, months?: number) => {
  const [types, byMonth] = await Promise.all([
    reader.find(tenantId, 'usage_types', { limit: MAX_TYPES }),
    usageByMonth(reader, tenantId, month, months),
  ]);
  const metrics = (types as unknown as readonly TypeDocument[]).map(({ type, ...rest }) => [type, rest]);
  const last = byMonth.at(-1);
  return {
    token_report: {
      metrics_by_type: Object.fromEntries(metrics),
      included_monthly_active_tokens: last?.included_monthly_active_tokens ?? 0,
      monthly_active_tokens: last?.monthly_active_tokens ?? 0,
    },
    ...(months === undefined ? {} : { months: byMonth }),
  };
};
