import { randomUUID } from 'node:crypto';
import { consistencyProof, inclusionProof, treeOf } from '../../projections/evidence';
import { findLog, logs } from '../../projections/logs';
import { PROGRESS, PROGRESS_KEY, type Document, type Reader } from '../../projections/projector';
import { projections } from '../../projections/projections';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { statementOf } from '../../src/evidence/statement';
import { EMPTY_ROOT, isConsistent, leafHash, rootByInclusion, type Hash } from '../../src/evidence/tree';
import type { Progress } from '../../src/read-models/read-models';
import { naiveRoot } from '../evidence/rows';
import { created, parkedIn, replayHarness, updated } from '../projecting/harness';
import { OTHER_TENANT, TENANT } from './given';
import { loggedOf, projected, type HistoryEvent } from './history';

const START = Date.UTC(2026, 4, 31);
const SETTINGS = { fingerprintTokens: false, deduplicateTokens: false };

const fact = (n: number, more: Partial<HistoryEvent> = {}): HistoryEvent => ({
  tenantId: TENANT,
  type: n % 3 === 0 ? 'TenantUpdated' : 'TokenRead',
  data: n % 3 === 0 ? { name: `Name ${n}`, settings: SETTINGS } : { entityId: `e${n}` },
  recordedMs: START + n,
  metadata: { client: { address: '192.0.2.1' } },
  ...more,
});
const facts = (count: number): readonly HistoryEvent[] => Array.from({ length: count }, (_, n) => fact(n));

const leafOf = (event: LoggedEvent): Hash => {
  const kind = event.stream.startsWith('tenant-') ? 'tenant' : 'activity';
  return leafHash(statementOf(event.stream.slice(kind.length + 1), kind, event));
};

const expectProven = async (reader: Reader, events: readonly LoggedEvent[], root: Hash): Promise<void> => {
  for (const [at, event] of events.entries()) {
    const { index, size, hashes, ...proof } = (await inclusionProof(reader, TENANT, event.id))!;
    expect([index, proof.root]).toEqual([at, root]);
    expect(rootByInclusion(leafOf(event), index, size, hashes)).toEqual(root);
  }
};

describe('the tree of the rows of a log', () => {
  it('of a tenant without events is empty', async () => {
    const reader = await projected(logs, loggedOf([fact(1)]));
    expect(await treeOf(reader, OTHER_TENANT)).toEqual({ size: 0, root: EMPTY_ROOT });
    expect(await inclusionProof(reader, OTHER_TENANT, randomUUID())).toBeUndefined();
    const tree = { size: 0, root: EMPTY_ROOT };
    expect(await consistencyProof(reader, OTHER_TENANT, 0)).toEqual({ tree, hashes: [] });
    expect(await consistencyProof(reader, OTHER_TENANT, 1)).toEqual({ tree, hashes: undefined });
  });

  it('proves every row and every older size, however it was projected', async () => {
    for (const count of [1, 2, 3, 7, 8, 33, 70]) {
      const events = loggedOf(facts(count));
      const leaves = events.map(leafOf);
      const root = naiveRoot(leaves);
      for (const sizes of [[1], [3, 1, 7], [count]]) {
        const reader = await projected(logs, events, { sizes });
        expect(await treeOf(reader, TENANT)).toEqual({ size: count, root });
        await expectProven(reader, events, root);
        for (let size = 0; size <= count; size += 1) {
          const { tree, hashes } = await consistencyProof(reader, TENANT, size);
          const older = { size, root: naiveRoot(leaves.slice(0, size)) };
          expect([size, isConsistent(older, tree, hashes!)]).toEqual([size, true]);
        }
        expect((await consistencyProof(reader, TENANT, count + 1)).hashes).toBeUndefined();
      }
    }
  });

  it('has no leaf for a second copy, nor for an event of another tenant', async () => {
    const id = randomUUID();
    const events = loggedOf([
      fact(1, { id }),
      fact(2),
      fact(1, { id, tenantId: OTHER_TENANT }),
      fact(4, { id }),
      fact(5),
    ]);
    const rows = [events[0]!, events[1]!, events[4]!];
    for (const sizes of [[1], [5]]) {
      const reader = await projected(logs, events, { sizes });
      const root = naiveRoot(rows.map(leafOf));
      expect(await treeOf(reader, TENANT)).toEqual({ size: 3, root });
      await expectProven(reader, rows, root);
      expect(await treeOf(reader, OTHER_TENANT)).toEqual({ size: 1, root: leafOf(events[2]!) });
    }
  });

  it('has the leaf of an event as it is stored that was set aside, whatever is in it', async () => {
    const good = loggedOf(facts(7));
    const stored: readonly Partial<LoggedEvent>[] = [
      { type: 'NeverHeardOf' },
      { data: Buffer.from('{"half'), metadata: Buffer.from([0, 255]) },
      { data: { text: '\ud800' } },
      { data: 7, metadata: [] },
      { data: JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) as unknown },
      {},
    ];
    const events = good.map((event, i) => ({ ...event, ...stored[i] }));
    const setAside = events.slice(0, stored.length);
    const reader = await projected(logs, events, { setAside });
    const root = naiveRoot(events.map(leafOf));
    expect(await treeOf(reader, TENANT)).toEqual({ size: 7, root });
    await expectProven(reader, events, root);
    expect(await findLog(reader, TENANT, events[5]!.id)).toMatchObject({ operation: 'set_aside' });
  });

  it('proves what it was when it was asked for, although it grows between two reads', async () => {
    const events = loggedOf(facts(50));
    const [then, now] = [events.slice(0, 21), events];
    const before = await projected(logs, then);
    const after = await projected(logs, now);
    const moving: Reader = {
      ...after,
      get: (tenantId, collection, key) =>
        (collection === PROGRESS.name ? before : after).get(tenantId, collection, key),
    };
    const older = await treeOf(before, TENANT);
    await expectProven(moving, then, older.root);
    const { tree, hashes } = await consistencyProof(moving, TENANT, 13);
    expect(tree).toEqual(older);
    const root = naiveRoot(events.slice(0, 13).map(leafOf));
    expect(isConsistent({ size: 13, root }, tree, hashes!)).toBe(true);
  });

  it('asks once for each proof, for at most two rows for each level', async () => {
    const events = loggedOf(facts(60));
    const reader = await projected(logs, events);
    const asked: number[] = [];
    const counted: Reader = {
      ...reader,
      at: (...scope) => {
        asked.push(scope[3].length);
        return reader.at(...scope);
      },
    };
    for (const { id } of events) await inclusionProof(counted, TENANT, id);
    expect(asked).toHaveLength(events.length);
    expect(Math.max(...asked)).toBeLessThanOrEqual(12);
  });
});

describe('a damaged tree', () => {
  it.each<[string, (stored: Document) => Document | undefined]>([
    ['is missing', () => undefined],
    ['has another size', (stored) => ({ ...stored, size: 1 })],
  ])('that %s takes no leaf, and parks the tenant until it is rebuilt', async (_, damage) => {
    const { set, edit, record, catchUp, readModels } = await replayHarness(projections);
    const tenantId = randomUUID();
    await record(tenantId, created(), updated('a'));
    await catchUp();
    const progress = (await set.get(tenantId, PROGRESS.name, PROGRESS_KEY)) as unknown as Progress;
    const damaged = damage(progress.carried!['log_frontier']!);
    const carried = damaged === undefined ? {} : { log_frontier: damaged };
    edit({ tenantId, collection: PROGRESS.name, key: PROGRESS_KEY }, { ...progress, carried });
    await record(tenantId, updated('b'));
    await catchUp();
    const [parked] = await parkedIn(set);
    expect(parked).toMatchObject({
      cause: 'bad_event',
      reason: expect.stringMatching(/^The evidence has [01] rows and the log 2: rebuild /),
    });
    const rebuilt = await catchUp(await readModels.create('log'));
    expect(await treeOf(rebuilt, tenantId)).toMatchObject({ size: 3 });
    expect(await parkedIn(rebuilt)).toEqual([]);
  });
});
