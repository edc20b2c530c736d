import { hasOperation } from '../../../projections/logs';
import { operations } from '../../domain/audit-wording';
import { suggestionFor } from '../../nearest';
import type { Stores } from '../dependencies';
import { invalid } from '../request/validation';

const isBuiltIn: ReadonlySet<string> = new Set(operations);

/** The filter `operation`. Reported facts have operations of their own, but one that occurs nowhere is a mistake. */
export const operationFilter = async (
  operation: string | undefined,
  tenantId: string,
  { reader }: Stores,
): Promise<string | undefined> => {
  const wanted = operation?.toLowerCase();
  if (wanted === undefined || isBuiltIn.has(wanted)) return wanted;
  if (await hasOperation(reader('logs'), tenantId, wanted)) return wanted;
  const suggestion = suggestionFor(wanted, operations);
  throw invalid({ operation: [`is neither built in nor in the log of this Tenant: ${suggestion}`] });
};
