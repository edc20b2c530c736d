import { keyRefused, keyStanding, mustBeGood, type HeldBy } from '../domain/authority';
import type { Fold } from '../ledger/fold';
import { digestOf, tenantOfKey } from '../ledger/api-key';
import { replyKey } from '../ledger/replies';
import { codeOf, fault } from '../fault';
import { isHttpProblemCode, problems } from '../problems';
import { findKeyStanding } from '../../projections/applications';
import { PARKED } from '../read-models/read-models';
import { PARKED_KEY } from '../projecting/fold-batch';
import { headerOf, pathOf, type ApiContext, type ApiParts, type Step } from './api-context';
import { sentIdempotencyKey } from './idempotency';

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Whose key it is. */
interface Holder {
  readonly keyId: string;
  readonly application: HeldBy;
}

/** Reads ask the read model. If it cannot be trusted about this tenant, the answer is 503, never a guess. */
const forReading = async ({ reader, isReady }: ApiParts, tenantId: string, digest: string, at: string) => {
  if (!isReady()) throw fault('starting', 'The read models have not caught up yet.');
  const applications = reader('applications');
  if ((await applications.get(tenantId, PARKED, PARKED_KEY)) !== undefined)
    throw fault('tenant_parked', `Tenant ${tenantId} is parked in applications.`);
  return mustBeGood(await findKeyStanding(applications, tenantId, digest, at));
};

/** The one exception to "no key of a deleted tenant": the same deletion again. */
const repeatsDeletion = (
  ctx: ApiContext,
  parts: ApiParts,
  fold: Fold,
  { keyId, application }: Holder,
): boolean => {
  const key = sentIdempotencyKey(ctx, parts.headers);
  if (ctx.method !== 'DELETE' || key === undefined) return false;
  const scope = `${ctx.method} ${pathOf(ctx)}`;
  return fold.replies.get(replyKey(application.id, { key, scope, hash: '' }))?.keyId === keyId;
};

const holderIn =
  (ctx: ApiContext, parts: ApiParts, digest: string) =>
  (fold: Fold): Holder => {
    const standing = keyStanding(fold.tenant, digest, ctx.state.at);
    if (standing.status === 'tenant_deleted' && repeatsDeletion(ctx, parts, fold, standing)) return standing;
    return mustBeGood(standing);
  };

const isClientsFault = (error: unknown): boolean => {
  const code = codeOf(error) ?? '';
  return isHttpProblemCode(code) && (problems[code].status ?? 500) < 500;
};

/**
 * Writes ask the tenant's own stream, so they need no read model. What is known of it may be old: the decision asks once
 * more when it appends, and what is refused before any decision asks here, so that a key that was revoked elsewhere hears
 * 401 and nothing else.
 */
const write = async (
  ctx: ApiContext,
  parts: ApiParts,
  { tenantId, digest }: { tenantId: string; digest: string },
  next: () => Promise<unknown>,
): Promise<void> => {
  const question = holderIn(ctx, parts, digest);
  const { keyId, application } = await parts.ledger.ask(tenantId, question, ctx.state.deadline);
  ctx.state.key = { tenantId, digest, keyId, application };
  parts.keyUses.used(tenantId, keyId, ctx.state.at);
  try {
    await next();
  } catch (error) {
    if (isClientsFault(error)) await parts.ledger.askAtHead(tenantId, question, ctx.state.deadline);
    throw error;
  }
};

/** 401 comes before everything that could tell a stranger what is here. */
export const authentication =
  (parts: ApiParts): Step =>
  async (ctx, next) => {
    const key = headerOf(ctx, parts.headers.apiKey);
    if (key === undefined) throw keyRefused('missing');
    const tenantId = tenantOfKey(key);
    if (tenantId === undefined) throw keyRefused('malformed');
    ctx.state.tenantId = tenantId;
    const digest = digestOf(key);
    if (!READING.has(ctx.method)) return write(ctx, parts, { tenantId, digest }, next);
    const { keyId, application } = await forReading(parts, tenantId, digest, ctx.state.at);
    ctx.state.key = { tenantId, digest, keyId, application };
    parts.keyUses.used(tenantId, keyId, ctx.state.at);
    await next();
  };
