import { keyRefused, keyStanding, mustBeGood, type HeldBy } from '../domain/authority';
import type { Fold } from '../ledger/fold';
import { digestOf, tenantOfKey } from '../ledger/api-key';
import { replyKey } from '../ledger/replies';
import { fault } from '../fault';
import { findKeyStanding } from '../../projections/applications';
import { PARKED } from '../read-models/read-models';
import { PARKED_KEY } from '../projecting/fold-batch';
import { headerOf, pathOf, type ApiContext, type ApiParts, type Step } from './api-context';
import { sentIdempotencyKey } from './idempotency';

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Reads ask the read model. If it cannot be trusted about this tenant, the answer is 503, never a guess. */
const forReading = async ({ reader, isReady }: ApiParts, tenantId: string, digest: string, at: string) => {
  if (!isReady()) throw fault('starting', 'The read models have not caught up yet.');
  const applications = reader('applications');
  if ((await applications.get(tenantId, PARKED, PARKED_KEY)) !== undefined)
    throw fault('tenant_parked', `Tenant ${tenantId} is parked in applications.`);
  return mustBeGood(await findKeyStanding(applications, tenantId, digest, at)).application;
};

/** The one exception to "no key of a deleted tenant": the same deletion again. */
const repeatsDeletion = (
  ctx: ApiContext,
  parts: ApiParts,
  fold: Fold,
  { keyId, application }: { keyId: string; application: HeldBy },
): boolean => {
  const key = sentIdempotencyKey(ctx, parts.headers);
  if (ctx.method !== 'DELETE' || key === undefined) return false;
  const scope = `${ctx.method} ${pathOf(ctx)}`;
  return fold.replies.get(replyKey(application.id, { key, scope, hash: '' }))?.keyId === keyId;
};

/** Writes ask the tenant's own stream, so they need no read model. The decision asks once more when it appends. */
const forWriting = (ctx: ApiContext, parts: ApiParts, tenantId: string, digest: string): Promise<HeldBy> => {
  const applicationIn = (fold: Fold): HeldBy => {
    const standing = keyStanding(fold.tenant, digest, ctx.state.at);
    if (standing.status === 'tenant_deleted' && repeatsDeletion(ctx, parts, fold, standing))
      return standing.application;
    return mustBeGood(standing).application;
  };
  return parts.ledger.ask(tenantId, applicationIn, ctx.state.deadline);
};

/** 401 comes before everything that could tell a stranger what is here. */
export const authentication =
  (parts: ApiParts): Step =>
  async (ctx, next) => {
    const key = headerOf(ctx, parts.headers.apiKey);
    if (key === undefined) throw keyRefused('missing');
    const tenantId = tenantOfKey(key);
    if (tenantId === undefined) throw keyRefused('malformed');
    const digest = digestOf(key);
    const application = READING.has(ctx.method)
      ? await forReading(parts, tenantId, digest, ctx.state.at)
      : await forWriting(ctx, parts, tenantId, digest);
    ctx.state.key = { tenantId, digest, application };
    await next();
  };
