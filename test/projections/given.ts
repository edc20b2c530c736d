import { randomUUID } from 'node:crypto';
import type { Projector, Reader } from '../../projections/projector';
import type { TenantEvent } from '../../src/domain/events';
import { decode } from '../../src/event-log/codec';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';
import { projected } from './history';

/** Given events, then documents, in real read models. */
const streams = streamNames();

export const TENANT = 'aaaaaaaa-0000-4000-8000-000000000001';
export const OTHER_TENANT = 'bbbbbbbb-0000-4000-8000-000000000002';
export const USER = 'cccccccc-0000-4000-8000-000000000003';

export const time = (n: number): string => new Date(Date.UTC(2026, 0, 1, 12, 0, n)).toISOString();

export interface Circumstance {
  readonly tenantId?: string;
  /** Null: no actor. */
  readonly by?: string | null;
}

export type Given = TenantEvent & { readonly circumstance?: Circumstance };

export const by = (who: string | null, event: TenantEvent): Given => ({
  ...event,
  circumstance: { by: who },
});
export const of = (tenantId: string, event: TenantEvent): Given => ({ ...event, circumstance: { tenantId } });

/** The events as stored in the log: the n-th at `time(n)`, counted from 1. */
export const logged = (events: readonly Given[]): readonly LoggedEvent[] => {
  const revisions = new Map<string, number>();
  return events.map(({ type, data, circumstance = {} }, i) => {
    const { tenantId = TENANT, by: who = USER } = circumstance;
    const revision = (revisions.get(tenantId) ?? -1) + 1;
    revisions.set(tenantId, revision);
    return {
      id: randomUUID(),
      type,
      data,
      metadata: {
        version: 1,
        at: time(i + 1),
        ...(who === null ? {} : { actor: { type: 'user', id: who } }),
      },
      stream: streams.tenant(tenantId),
      revision,
      position: String(i + 1).padStart(16, '0'),
      recordedAt: time(i + 1),
    };
  });
};

export const recorded = (events: readonly Given[]) =>
  logged(events).map((event) => {
    const decoded = decode(event, streams);
    if (decoded.status !== 'good') throw new Error(JSON.stringify(decoded));
    return decoded.event;
  });

export interface Then {
  readonly reader: Reader;
  parked(tenantId?: string): Promise<string | undefined>;
}

export const given = async (projector: Projector, ...events: Given[]): Promise<Then> => {
  const reader = await projected(projector, logged(events));
  return {
    reader,
    parked: async (tenantId = TENANT) => (await reader.progress([tenantId]))[0]?.parked?.reason,
  };
};
