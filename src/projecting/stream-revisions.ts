import type { Reader } from '../../projections/projector';
import type { StreamKind } from '../domain/events';
import { STREAMS } from '../read-models/read-models';

/** How much of one of a tenant's streams is in a generation: its key is the kind of the stream. */
export interface StreamDocument {
  readonly revision: number;
}

/** The last revision of a tenant's stream that is in this read model, -1 if there is none. */
export const lastRevision = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
  kind: StreamKind,
): Promise<number> =>
  ((await reader.get(tenantId, STREAMS, kind)) as unknown as StreamDocument | undefined)?.revision ?? -1;
