import { keyRefused, mustBeGood, type HeldBy, type KeyStanding } from '../../domain/authority';
import { digestOf, tenantOfKey } from '../../ledger/api-key';
import { codeOf, fault } from '../../fault';
import { isHttpProblemCode, problems } from '../../problems';
import { headerOf, type ApiContext, type ApiParts, type Step } from '../api-context';
import { sentIdempotencyKey } from './idempotency';

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Whose key it is. */
interface Holder {
  readonly keyId: string;
  readonly application: HeldBy;
}

interface Named {
  readonly tenantId: string;
  readonly digest: string;
}

const accepted = (ctx: ApiContext, parts: ApiParts, named: Named, { keyId, application }: Holder): void => {
  const { tenantId, digest } = named;
  ctx.state.key = { tenantId, digest, keyId, application };
  parts.keyUses.used(tenantId, keyId, ctx.state.at);
};

const checkedKey = ({ state: { at, deadline } }: ApiContext, { tenantId, digest }: Named) => ({
  tenantId,
  digest,
  at,
  deadline,
});

const read = async (
  ctx: ApiContext,
  parts: ApiParts,
  named: Named,
  next: () => Promise<unknown>,
): Promise<void> => {
  if (!parts.isReady())
    throw fault('starting', 'The read models have not caught up yet.', { progress: parts.startProgress() });
  const standing = await parts.keys.forReading(checkedKey(ctx, named));
  accepted(ctx, parts, named, mustBeGood(standing));
  await parts.upToDate();
  await next();
};

/** The one exception to "no key of a deleted tenant": the same deletion again. */
const repeatsDeletion = async (
  ctx: ApiContext,
  { headers, ledger }: ApiParts,
  { tenantId }: Named,
  { keyId, application }: Holder,
): Promise<boolean> => {
  const key = sentIdempotencyKey(ctx, headers);
  if (ctx.method !== 'DELETE' || key === undefined) return false;
  const request = { key, scope: `${ctx.method} ${ctx.state.path}` };
  const reply = await ledger.replyTo(tenantId, application.id, request, ctx.state.deadline);
  return reply?.keyId === keyId;
};

const mustBeHolder = async (
  ctx: ApiContext,
  parts: ApiParts,
  named: Named,
  standing: KeyStanding,
): Promise<Holder> =>
  standing.status === 'tenant_deleted' && (await repeatsDeletion(ctx, parts, named, standing))
    ? standing
    : mustBeGood(standing);

const isClientsFault = (error: unknown): boolean => {
  const code = codeOf(error) ?? '';
  return isHttpProblemCode(code) && (problems[code].status ?? 500) < 500;
};

/**
 * The decision checks the key once more at the revision that it appends at. What is refused before any decision is
 * checked here, so that a key that was revoked elsewhere hears 401 and nothing else.
 */
const write = async (
  ctx: ApiContext,
  parts: ApiParts,
  named: Named,
  next: () => Promise<unknown>,
): Promise<void> => {
  const standing = await parts.keys.forWriting(checkedKey(ctx, named));
  accepted(ctx, parts, named, await mustBeHolder(ctx, parts, named, standing));
  try {
    await next();
  } catch (error) {
    if (isClientsFault(error))
      await mustBeHolder(ctx, parts, named, await parts.keys.atHead(checkedKey(ctx, named)));
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
    await (READING.has(ctx.method) ? read : write)(ctx, parts, { tenantId, digest: digestOf(key) }, next);
  };
