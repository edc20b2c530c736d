import type { Decide } from '../../domain/tenant';
import type { Command, Precondition } from '../../ledger/ledger';
import type { RouteRequest } from './route';

/** Turns a request into a command. `conditional` is what `If-Match` refers to, if anything. */
export const commandOf = (
  request: RouteRequest<unknown>,
  decide: Decide,
  conditional?: Pick<Precondition, 'of' | 'tag'>,
): Command => ({
  decide,
  tenantId: request.tenantId,
  caller: request.caller,
  at: request.at,
  traceId: request.traceId,
  deadline: request.deadline,
  client: request.client,
  permission: request.permission,
  precondition: conditional && request.isMet && { ...conditional, isMet: request.isMet },
  idempotency: request.idempotency,
});
