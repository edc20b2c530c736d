import { beforeDeadline } from '../../async/clock';
import { findPlace } from '../../audit/event-places';
import type { Moment } from '../../audit/past-tenant';
import { parseMoment } from '../../domain/texts';
import type { LoggedEvent } from '../../event-log/event-log';
import type { LedgerLog } from '../../event-log/streams';
import { loadTimeout } from '../../ledger/folds';
import type { ApiDependencies } from '../context';
import { textParameter } from '../query-parameters';
import type { RouteRequest } from '../route';
import { requirePermission } from '../run-route';
import { invalid } from '../validation';

/** What is wrong with a position at which there is no event. */
export const positionRefused = (expected = 'the position of an event'): string =>
  `must be ${expected} of this Tenant, for example tenant:12`;

/** The event that a request names by its position. Undefined: there is none. */
export const eventAtPosition = (
  position: string,
  { tenantId, deadline }: RouteRequest,
  { events }: ApiDependencies,
): Promise<LoggedEvent | undefined> =>
  beforeDeadline(findPlace(events.ledgerLog, tenantId, position), deadline, loadTimeout);

/** The past is part of the audit log. */
const PERMISSION = 'log:read';

export const asOfParameter = (what: string) =>
  textParameter(
    `${what} at a time, or after the event at a \`position\` of \`/events\`; needs the permission \`${PERMISSION}\`, too.`,
    '2026-01-31T12:00:00Z',
  );

/** The moment that `as_of` names, for a caller who may read the log. */
const pastMoment = async (
  asOf: string,
  request: RouteRequest,
  dependencies: ApiDependencies,
): Promise<Moment> => {
  const { tenantId, application, caller, at, deadline } = request;
  const presented = { tenantId, digest: caller.digest, at, deadline };
  await requirePermission(PERMISSION, application, presented, dependencies);
  const time = parseMoment(asOf.replace(' ', '+'));
  if (time !== undefined) return { time };
  const event = await eventAtPosition(asOf, request, dependencies);
  if (event !== undefined) return { time: event.recordedAt, position: event.position };
  const expected = 'an ISO 8601 date or date-time, or the position of an event';
  throw invalid({ as_of: [positionRefused(expected)] });
};

/** Reads what was at the moment that `as_of` names. */
export const readPast = async <T>(
  asOf: string,
  request: RouteRequest,
  dependencies: ApiDependencies,
  read: (ledgerLog: LedgerLog, moment: Moment) => Promise<T>,
): Promise<T> => {
  const moment = await pastMoment(asOf, request, dependencies);
  const until = { deadline: request.deadline, gone: request.gone() };
  return dependencies.events.readHistory(request.tenantId, until, (ledgerLog) => read(ledgerLog, moment));
};
