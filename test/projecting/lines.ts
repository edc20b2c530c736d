import { change, changeTogether, type Document, type Projector } from '../../projections/projector';
import type { Recorded } from '../../src/domain/events';

/**
 * A projector for tests whose documents reveal every mistake: an event applied twice, skipped or out of order changes
 * the number and the sum of all that follow. One number comes from a document, the other from the end of a line.
 */
export interface HeadDocument {
  readonly count: number;
  readonly sum: number;
}

const MODULUS = 1_000_003;

type CannotRead = (event: Recorded) => boolean;

/** All rows of a tenant. */
const ROWS = { collection: 'rows', index: 'all', equal: ['row'] };

const line = (cannotRead: CannotRead) => (event: Recorded) => [
  changeTogether(
    [
      { collection: 'heads', key: 'all' },
      { collection: 'rows', key: event.position },
    ],
    ([before, row], [end]) => {
      if (cannotRead(event)) throw new Error('I cannot read this.');
      const head = (before ?? { count: 0, sum: 0 }) as unknown as HeadDocument;
      const sum = (head.sum * 31 + Number(event.position)) % MODULUS;
      const number = (end?.number ?? 0) + 1;
      const after = end?.value ?? null;
      return [
        { count: head.count + 1, sum },
        { of: 'row', number, at: event.position, after, type: event.type, twice: row !== undefined },
      ];
    },
    [ROWS],
  ),
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
    collections: [
      { name: 'heads', indexes: {} },
      { name: 'rows', indexes: { all: ['of', 'number'] }, numbered: { all: 'at' } },
      { name: 'marks', indexes: {} },
    ],
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
      const after = own[i - 1]?.position ?? null;
      const row = { of: 'row', number: i + 1, at: position, after, type, twice: false };
      documents[`${tenantId} rows ${position}`] = row;
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
