import type { Moment } from '../../audit/past-tenant';
import { parseMoment } from '../../domain/moment';
import type { ApiDependencies } from '../context';
import { requirePermission } from '../run-route';
import { textParameter } from '../query-parameters';
import { invalid } from '../validation';
import { placeAt, positionRefused } from './events';
import type { RouteRequest } from '../route';

/** The past is part of the audit log. */
const PERMISSION = 'log:read';

export const asOfParameter = (what: string) =>
  textParameter(
    `${what} at a time, or after the event at a \`position\` of \`/events\`; needs the permission \`${PERMISSION}\`, too.`,
    '2026-01-31T12:00:00Z',
  );

/** The moment that `as_of` names, for a caller who may read the log. */
export const pastMoment = async (
  asOf: string,
  request: RouteRequest<unknown>,
  dependencies: ApiDependencies,
): Promise<Moment> => {
  const { tenantId, application, caller, at, deadline } = request;
  const presented = { tenantId, digest: caller.digest, at, deadline };
  await requirePermission(PERMISSION, application, presented, dependencies);
  const time = parseMoment(asOf.replace(' ', '+'));
  if (time !== undefined) return { time };
  const event = await placeAt(asOf, request, dependencies);
  if (event !== undefined) return { time: event.recordedAt, position: event.position };
  const expected = 'an ISO 8601 date or date-time, or the position of an event';
  throw invalid({ as_of: [positionRefused(expected)] });
};
