import { keyRefused } from '../../domain/authority';
import { codeOf, fault } from '../../fault';
import { digestOf, tenantOfKey } from '../../ledger/api-key';
import type { PresentedKey } from '../../ledger/identify';
import { isRefused } from '../../ledger/ledger';
import { httpProblems, isHttpProblemCode } from '../../problems';
import { headerOf, type ApiContext, type ApiDependencies } from '../api-context';
import { sentIdempotencyKey } from './idempotency';

const isRead = ({ method }: ApiContext): boolean =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS';

const presentedKeyOf = (ctx: ApiContext, { headers }: ApiDependencies): PresentedKey => {
  const { at, deadline, path } = ctx.state;
  const key = headerOf(ctx, headers.apiKey);
  if (key === undefined) throw keyRefused('missing');
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) throw keyRefused('malformed');
  const idempotencyKey = isRead(ctx) ? undefined : sentIdempotencyKey(ctx, headers);
  const request =
    idempotencyKey === undefined ? undefined : { key: idempotencyKey, scope: `${ctx.method} ${path}` };
  return { tenantId, digest: digestOf(key), at, deadline, isWrite: !isRead(ctx), request };
};

/** A key that is accepted for a read was valid at most this long ago. */
export const MAX_READ_AGE_MS = 400;

/** A key may start a write however long ago it was valid: `execute` checks it at the revision of the append. */
const MAX_WRITE_AGE_MS = Infinity;

/** 401 comes first: an unauthenticated caller must not learn which routes exist. */
export const authenticate = async (ctx: ApiContext, dependencies: ApiDependencies): Promise<void> => {
  const presented = presentedKeyOf(ctx, dependencies);
  ctx.state.presented = presented;
  if (!isRead(ctx)) {
    ctx.state.identity = await dependencies.ledger.identify(presented, MAX_WRITE_AGE_MS);
    return;
  }
  if (!(await dependencies.whenReady(ctx.state.deadline)))
    throw fault('starting', 'The read models have not caught up yet.', {
      progress: dependencies.startProgress(),
    });
  ctx.state.identity = await dependencies.ledger.identify(presented, MAX_READ_AGE_MS);
  if (!(await dependencies.upToDate())) ctx.state.mayBeStale = true;
};

/** Whether a write was refused before `execute`, which decides at the head of the stream anyway. */
const isRefusedEarly = (error: unknown): boolean => {
  const code = codeOf(error) ?? '';
  return !isRefused(error) && isHttpProblemCode(code) && httpProblems[code].status < 500;
};

/**
 * The error to respond with. If a write is refused before any decision, its key is checked again at the head of the
 * stream: if another process has revoked it in the meantime, the response is 401 instead of the original error.
 */
export const finalError = async (
  ctx: ApiContext,
  error: unknown,
  { ledger }: ApiDependencies,
): Promise<unknown> => {
  const { presented, identity } = ctx.state;
  if (presented === undefined || identity === undefined || isRead(ctx) || !isRefusedEarly(error))
    return error;
  try {
    // Not from `presented`: both were reset once the body had arrived.
    const { at, deadline } = ctx.state;
    await ledger.identify({ ...presented, at, deadline }, 0);
    return error;
  } catch (refused) {
    return refused;
  }
};
