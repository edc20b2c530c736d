import { hasOperation } from '../../../projections/logs';
import { beforeDeadline } from '../../async/clock';
import { isBehind, knownIn } from '../../audit/find-event';
import { operations } from '../../domain/audit-wording';
import { codeOf } from '../../fault';
import { loadTimeout } from '../../ledger/folds';
import { ANSWER_MS } from '../../ledger/ledger';
import { suggestionFor } from '../../nearest';
import type { Stores } from '../dependencies';
import { invalid } from '../request/validation';
import type { RouteRequest } from './route';

const builtIn: ReadonlySet<string> = new Set(operations);

const UNKNOWN: ReadonlySet<string> = new Set(['starting', 'read_models_unavailable', 'log_unavailable']);

/** False only if the read model `logs` has all events of the tenant: `GET /events` reads what it does not have yet. */
const mayOccur = async (
  operation: string,
  { tenantId, deadline }: RouteRequest<unknown>,
  { reader, events }: Stores,
): Promise<boolean> => {
  try {
    const logs = reader('logs');
    // Read first: what is applied in the meantime then counts as not known, and is not missed.
    const known = await knownIn(logs, tenantId);
    if (await hasOperation(logs, tenantId, operation)) return true;
    const behind = isBehind(events.ledgerLog, tenantId, known);
    return await beforeDeadline(behind, deadline - ANSWER_MS, loadTimeout);
  } catch (error) {
    if (!UNKNOWN.has(codeOf(error) ?? '')) throw error;
    return true;
  }
};

/** The filter `operation`. Reported facts have operations of their own, but one that occurs nowhere is a mistake. */
export const operationFilter = async (
  operation: string | undefined,
  request: RouteRequest<unknown>,
  stores: Stores,
): Promise<string | undefined> => {
  const wanted = operation?.toLowerCase();
  if (wanted === undefined || builtIn.has(wanted)) return wanted;
  if (await mayOccur(wanted, request, stores)) return wanted;
  const suggestion = suggestionFor(wanted, operations);
  throw invalid({ operation: [`is neither built in nor in the log of this Tenant: ${suggestion}`] });
};
