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
import { headerOf, type ApiContext, type ApiParts, type ApiState, type Step } from './api-context';
import { sentIdempotencyKey } from './idempotency';
import { rememberedBy } from './remembered-by';

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

/** No moment that a request can come at is later: a key that is good then does not expire. */
const NEVER = '9999-12-31T23:59:59.999Z';

type KnownKey = NonNullable<ApiState['key']>;

/** Whose key it is. */
interface Holder {
  readonly keyId: string;
  readonly application: HeldBy;
}

interface Named {
  readonly key: string;
  readonly tenantId: string;
  readonly digest: string;
}

/** Good keys without an expiry, by digest: known as long as the reader that they were read with shows the same. */
const lastingKeys = rememberedBy<KnownKey>();

/** If the read model cannot be trusted about this tenant, the answer is 503, never a guess. */
const findKey = async (applications: Reader, { tenantId, digest }: Named, at: string): Promise<KnownKey> => {
  if ((await applications.get(tenantId, PARKED, PARKED_KEY)) !== undefined)
    throw fault('tenant_parked', `Tenant ${tenantId} is parked in applications.`);
  const { keyId, application } = mustBeGood(await findKeyStanding(applications, tenantId, digest, at));
  const key = { tenantId, digest, keyId, application };
  if ((await findKeyStanding(applications, tenantId, digest, NEVER)).status === 'good')
    lastingKeys(applications).set(digest, key);
  return key;
};

/** Reads ask the read model. */
const read = async (
  ctx: ApiContext,
  parts: ApiParts,
  named: Named,
  next: () => Promise<unknown>,
): Promise<void> => {
  const { state } = ctx;
  if (!parts.isReady())
    throw fault('starting', 'The read models have not caught up yet.', { progress: parts.startProgress() });
  await parts.upToDate();
  const applications = parts.reader('applications');
  const key = lastingKeys(applications).get(named.digest) ?? (await findKey(applications, named, state.at));
  state.key = key;
  parts.keyUses.used(key.tenantId, key.keyId, state.at);
  await next();
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
  const scope = `${ctx.method} ${ctx.state.path}`;
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
  { tenantId, digest }: Named,
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
export const authentication = (parts: ApiParts): Step => {
  const keyHeader = parts.headers.apiKey.toLowerCase();
  return (ctx, next) => {
    const key = headerOf(ctx, keyHeader);
    if (key === undefined) throw keyRefused('missing');
    const named = namedIn(key, ctx.req.socket);
    ctx.state.tenantId = named.tenantId;
    return (READING.has(ctx.method) ? read : write)(ctx, parts, named, next);
  };
};
