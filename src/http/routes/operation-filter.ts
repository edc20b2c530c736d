import { hasOperation } from '../../../projections/logs';
import { operations } from '../../domain/audit-wording';
import { codeOf } from '../../fault';
import { suggestionFor } from '../../nearest';
import { findParked } from '../../projecting/parked-tenants';
import type { Stores } from '../dependencies';
import { invalid } from '../request/validation';

const builtIn: ReadonlySet<string> = new Set(operations);

/** False only if the read model `logs` has all events of the tenant: `GET /events` reads what it does not have yet. */
const mayOccur = async (operation: string, tenantId: string, { reader }: Stores): Promise<boolean> => {
  try {
    const logs = reader('logs');
    return (
      (await hasOperation(logs, tenantId, operation)) || (await findParked(logs, tenantId)) !== undefined
    );
  } catch (error) {
    if (codeOf(error) !== 'starting' && codeOf(error) !== 'read_models_unavailable') throw error;
    return true;
  }
};

/** The filter `operation`. Reported facts have operations of their own, but one that occurs nowhere is a mistake. */
export const operationFilter = async (
  operation: string | undefined,
  tenantId: string,
  stores: Stores,
): Promise<string | undefined> => {
  const wanted = operation?.toLowerCase();
  if (wanted === undefined || builtIn.has(wanted)) return wanted;
  if (await mayOccur(wanted, tenantId, stores)) return wanted;
  const suggestion = suggestionFor(wanted, operations);
  throw invalid({ operation: [`is neither built in nor in the log of this Tenant: ${suggestion}`] });
};
