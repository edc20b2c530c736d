import type { Decide } from '../../domain/tenant';
import type { Command, Precondition } from '../../ledger/ledger';
import type { Asked } from './route';

/** A request as a command: what is decided, and what `If-Match` is about, if anything. */
export const commandOf = (
  asked: Asked<unknown>,
  decide: Decide,
  conditional?: Pick<Precondition, 'of' | 'revision'>,
): Command => ({
  decide,
  tenantId: asked.tenantId,
  caller: asked.caller,
  at: asked.at,
  traceId: asked.traceId,
  deadline: asked.deadline,
  client: asked.client,
  permission: asked.permission,
  precondition: conditional && asked.isMet && { ...conditional, isMet: asked.isMet },
  idempotency: asked.idempotency,
});
