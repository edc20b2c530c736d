import { keyRefused } from '../../domain/authority';
import { isRefusal } from '../../domain/refusal';
import { digestOf, tenantOfKey } from '../../ledger/api-key';
import type { PresentedKey } from '../../ledger/identify';
import { codeOf, fault } from '../../fault';
import { isHttpProblemCode, problems } from '../../problems';
import { headerOf, type ApiContext, type ApiParts, type Step } from '../api-context';
import { sentIdempotencyKey } from './idempotency';

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

interface Named {
  readonly tenantId: string;
  readonly digest: string;
}

const presented = (ctx: ApiContext, { headers }: ApiParts, { tenantId, digest }: Named): PresentedKey => {
  const { at, deadline, path } = ctx.state;
  const key = sentIdempotencyKey(ctx, headers);
  const request = key === undefined ? undefined : { key, scope: `${ctx.method} ${path}` };
  return { tenantId, digest, at, deadline, request };
};

const read = async (
  ctx: ApiContext,
  parts: ApiParts,
  named: Named,
  next: () => Promise<unknown>,
): Promise<void> => {
  if (!parts.isReady())
    throw fault('starting', 'The read models have not caught up yet.', { progress: parts.startProgress() });
  const key = presented(ctx, parts, named);
  const identity = await parts.ledger.identify(key, 'read');
  ctx.state.key = { ...key, ...identity };
  parts.keyUses.used(identity.tenantId, identity.keyId, ctx.state.at);
  await parts.upToDate();
  await next();
};

/** What `execute` refuses rests on the head of the stream already. */
const isRefusedEarly = (error: unknown): boolean => {
  const code = codeOf(error) ?? '';
  return !isRefusal(error) && isHttpProblemCode(code) && (problems[code].status ?? 500) < 500;
};

/** A write that is refused before any decision: a key that was revoked elsewhere hears 401 and nothing else. */
const write = async (
  ctx: ApiContext,
  parts: ApiParts,
  named: Named,
  next: () => Promise<unknown>,
): Promise<void> => {
  const { ledger, keyUses } = parts;
  const key = presented(ctx, parts, named);
  const identity = await ledger.identify(key, 'write');
  ctx.state.key = { ...key, ...identity };
  try {
    await next();
  } catch (error) {
    if (isRefusedEarly(error)) await ledger.identifyAtHead(key);
    if (codeOf(error) !== 'key_refused') keyUses.used(identity.tenantId, identity.keyId, ctx.state.at);
    throw error;
  }
  keyUses.used(identity.tenantId, identity.keyId, ctx.state.at);
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
