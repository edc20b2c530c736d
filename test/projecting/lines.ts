import { type Document, type Projector, change } from '../../projections/projector';
import type { Recorded } from '../../src/domain/events';

/**
 * A projector for tests whose documents reveal every mistake: an event applied twice, skipped or out of order changes
 * the number and the sum of all that follow.
 */
export interface HeadDocument {
  readonly count: number;
  readonly sum: number;
}

const MODULUS = 1_000_003;

type CannotRead = (event: Recorded) => boolean;

const line = (cannotRead: CannotRead) => (event: Recorded) => [
  {
    touches: [
      { collection: 'heads', key: 'all' },
      { collection: 'rows', key: event.position },
    ],
    apply: ([before, row]: readonly (Document | undefined)[]): readonly Document[] => {
      if (cannotRead(event)) throw new Error('I cannot read this.');
      const head = (before ?? { count: 0, sum: 0 }) as unknown as HeadDocument;
      const count = head.count + 1;
      const sum = (head.sum * 31 + Number(event.position)) % MODULUS;
      return [
        { count, sum },
        { number: count, type: event.type, twice: row !== undefined },
      ];
    },
  },
  ...mark(event),
];

/** Keys are added and revoked, so documents are removed. */
const mark = (event: Recorded) => {
  if (event.type === 'KeyAdded') return [change('marks', event.data.keyId, () => ({ at: event.position }))];
  if (event.type === 'KeyRevoked') return [change('marks', event.data.keyId, () => undefined)];
  return [];
};

export const lineCollections = ['heads', 'rows', 'marks'];

export const linesProjector = (cannotRead: CannotRead = () => false): Projector => {
  const reducer = line(cannotRead);
  return {
    name: 'lines',
    version: 1,
    streams: ['tenant', 'activity'],
    collections: lineCollections.map((name) => ({ name, indexes: {} })),
    on: {
      TenantCreated: reducer,
      TenantUpdated: reducer,
      TenantPlanChanged: reducer,
      KeyAdded: reducer,
      KeyRevoked: reducer,
    },
  };
};

/** What happened, as recorded by the test itself. */
export interface Happened {
  readonly tenantId: string;
  readonly type: string;
  readonly position: string;
  readonly keyId?: string;
  readonly bad: boolean;
}

/** The expected documents, computed from the whole history at once: no batches, no state, no reducers. */
export const plainLines = (history: readonly Happened[]): Record<string, Document> => {
  const documents: Record<string, Document> = {};
  for (const tenantId of new Set(history.map((event) => event.tenantId))) {
    const all = history.filter((event) => event.tenantId === tenantId);
    const stop = all.findIndex((event) => event.bad);
    const own = stop < 0 ? all : all.slice(0, stop);
    own.forEach(({ position, type }, i) => {
      documents[`${tenantId} rows ${position}`] = { number: i + 1, type, twice: false };
    });
    const sum = own.reduce((before, { position }) => (before * 31 + Number(position)) % MODULUS, 0);
    if (own.length > 0) documents[`${tenantId} heads all`] = { count: own.length, sum };
    for (const keyId of new Set(own.flatMap((event) => event.keyId ?? []))) {
      const last = own.findLast((event) => event.keyId === keyId);
      if (last?.type === 'KeyAdded') documents[`${tenantId} marks ${keyId}`] = { at: last.position };
    }
  }
  return documents;
};
