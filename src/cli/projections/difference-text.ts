import type { Difference } from '../../projecting/compare';

/** For a terminal: which document differs, and how. */
export const differenceText = (
  projection: string,
  { kind, tenantId, collection, key, live, replayed }: Difference,
): string => {
  const which = JSON.stringify({ projection, kind, tenant_id: tenantId, collection, key });
  return `${which}\n  live:     ${JSON.stringify(live)}\n  replayed: ${JSON.stringify(replayed)}`;
};
