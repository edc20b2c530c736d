import type { Collection, Document } from '../../projections/projector';
import type { Advanced, ReadModelSet, Write } from '../../src/read-models/read-models';

export const ONE = '11111111-1111-4111-8111-111111111111';
export const TWO = '22222222-2222-4222-8222-222222222222';
export const LOG = 'some log';

export const COLLECTIONS: readonly Collection[] = [
  {
    name: 'notes',
    indexes: { by_shelf: ['shelf', 'place'], by_colour: ['colour'], on_shelf: ['shelf', 'place'] },
    numbered: { on_shelf: 'moment' },
  },
  { name: 'counts', indexes: {} },
];

export const at = (position: number) => ({
  position: String(position).padStart(16, '0'),
  eventId: `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`,
});

export const note = (key: string, document: Document | undefined, tenantId = ONE): Write => ({
  tenantId,
  collection: 'notes',
  key,
  document,
});

/** Adds one to a counter, and a note with its number. */
export const add = (set: ReadModelSet): Promise<Advanced> =>
  set.advance(async ({ n, parked }) => {
    const counter = { tenantId: ONE, collection: 'counts', key: 'all' };
    const [found = { count: 0 }] = await set.load([counter]);
    const count = Number(found['count']) + 1;
    const writes = [{ ...counter, document: { count } }, note(`n${count}`, { shelf: 'a', place: count })];
    return { to: at(n + 1), writes, parked };
  });

export const countIn = async (set: ReadModelSet): Promise<number> =>
  Number((await set.get(ONE, 'counts', 'all'))?.['count'] ?? 0);
