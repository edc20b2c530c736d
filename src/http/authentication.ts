import type { Socket } from 'node:net';
import { keyRefused, keyStanding, mustBeGood, type HeldBy } from '../domain/authority';
import type { Fold } from '../ledger/fold';
import { digestOf, tenantOfKey } from '../ledger/api-key';
import { replyKey } from '../ledger/replies';
import { codeOf, fault } from '../fault';
import { isHttpProblemCode, problems } from '../problems';
import type { Reader } from '../../projections/projector';
import { findKeyStanding } from '../../projections/applications';
import { PARKED } from '../read-models/read-models';
import { PARKED_KEY } from '../projecting/fold-batch';
import { headerOf, pathOf, type ApiContext, type ApiParts, type Step } from './api-context';
import { sentIdempotencyKey } from './idempotency';

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

/** No moment that a request can come at is later: a key that is good then does not expire. */
const NEVER = '9999-12-31T23:59:59.999Z';

/** Whose key it is. */
interface Holder {
  readonly keyId: string;
  readonly application: HeldBy;
}

/** Good keys without an expiry, by digest: known as long as the reader that they were read with shows the same. */
const lastingKeys = new WeakMap<Reader, Map<string, Holder>>();

const lastingKeysIn = (reader: Reader): Map<string, Holder> => {
  const known = lastingKeys.get(reader) ?? new Map<string, Holder>();
  lastingKeys.set(reader, known);
  return known;
};

/** Reads ask the read model. If it cannot be trusted about this tenant, the answer is 503, never a guess. */
const forReading = async (parts: ApiParts, tenantId: string, digest: string, at: string): Promise<Holder> => {
  if (!parts.isReady())
    throw fault('starting', 'The read models have not caught up yet.', { progress: parts.startProgress() });
  await parts.upToDate();
  const applications = parts.reader('applications');
  const lasting = lastingKeysIn(applications);
  const known = lasting.get(digest);
  if (known !== undefined) return known;
  if ((await applications.get(tenantId, PARKED, PARKED_KEY)) !== undefined)
    throw fault('tenant_parked', `Tenant ${tenantId} is parked in applications.`);
  const holder = mustBeGood(await findKeyStanding(applications, tenantId, digest, at));
  if ((await findKeyStanding(applications, tenantId, digest, NEVER)).status === 'good')
    lasting.set(digest, holder);
  return holder;
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

interface Named {
  readonly key: string;
  readonly tenantId: string;
  readonly digest: string;
}

/** The key that last came over a connection: mostly it is the same again. It is forgotten with the connection. */
const lastNamed = new WeakMap<Socket, Named>();

const namedIn = (key: string, socket: Socket): Named => {
  const last = lastNamed.get(socket);
  if (last?.key === key) return last;
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) throw keyRefused('malformed');
  const named = { key, tenantId, digest: digestOf(key) };
  lastNamed.set(socket, named);
  return named;
};

/** 401 comes before everything that could tell a stranger what is here. */
export const authentication =
  (parts: ApiParts): Step =>
  async (ctx, next) => {
    const key = headerOf(ctx, parts.headers.apiKey);
    if (key === undefined) throw keyRefused('missing');
    const { tenantId, digest } = namedIn(key, ctx.req.socket);
    ctx.state.tenantId = tenantId;
    if (!READING.has(ctx.method)) return write(ctx, parts, { tenantId, digest }, next);
    const { keyId, application } = await forReading(parts, tenantId, digest, ctx.state.at);
    ctx.state.key = { tenantId, digest, keyId, application };
    parts.keyUses.used(tenantId, keyId, ctx.state.at);
    await next();
  };
