import type { Projector, Reader } from '../../projections/projector';
import type { TenantEvent } from '../../src/domain/events';
import { decode } from '../../src/event-log/codec';
import { streamNames } from '../../src/event-log/streams';
import { loggedOf, projected } from './history';

/** Given events, then documents, in real read models. */
export const TENANT = 'aaaaaaaa-0000-4000-8000-000000000001';
export const OTHER_TENANT = 'bbbbbbbb-0000-4000-8000-000000000002';
export const USER = 'cccccccc-0000-4000-8000-000000000003';

export const time = (n: number): string => new Date(Date.UTC(2026, 0, 1, 12, 0, n)).toISOString();

interface Circumstance {
  readonly tenantId?: string;
  /** Null: no actor. */
  readonly by?: string | null;
}

export type Given = TenantEvent & { readonly circumstance?: Circumstance };

export const of = (tenantId: string, event: TenantEvent): Given => ({ ...event, circumstance: { tenantId } });

/** The events as stored in the log: the n-th at `time(n)`, counted from 1. */
const logged = (events: readonly Given[]) =>
  loggedOf(
    events.map(({ type, data, circumstance = {} }, i) => {
      const { tenantId = TENANT, by = USER } = circumstance;
      const actor = by === null ? {} : { actor: { type: 'user', id: by } };
      const metadata = { version: 1, at: time(i + 1), ...actor };
      return { tenantId, type, data: { ...data }, recordedMs: Date.parse(time(i + 1)), metadata };
    }),
  );

export const recorded = (events: readonly Given[]) =>
  logged(events).map((event) => {
    const decoded = decode(event, streamNames());
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
