import type { Reader } from '../../projections/projector';
import type { StreamKind } from '../domain/events';
import { STREAMS } from '../read-models/read-models';

/** How much of a tenant's stream a set has applied. Its key is the stream kind. */
export interface StreamDocument {
  readonly revision: number;
}

/** The last revision of a tenant's stream that a set has applied, or -1. */
export const lastRevision = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
  kind: StreamKind,
): Promise<number> =>
  ((await reader.get(tenantId, STREAMS, kind)) as unknown as StreamDocument | undefined)?.revision ?? -1;
