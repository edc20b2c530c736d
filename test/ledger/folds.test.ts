import { DatabaseSync } from '@photostructure/sqlite';
import { copyFileSync, cpSync, readdirSync } from 'node:fs';
import { threadMs } from '../../src/async/clock';
import { join } from 'node:path';
import { bytesOf, emptyFold, foldingStream, tenantEventOf, type Fold } from '../../src/ledger/fold';
import { readSnapshot, snapshotText } from '../../src/ledger/snapshot-text';
import { fileDamages } from '../support/damage';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  addKeys,
  byOperator,
  closeLedgers,
  fillStream,
  linesOf,
  makeCustomer,
  openLedger,
  rename,
  streams,
  textOf,
  type Customer,
  type OpenLedger,
  soon,
} from '../support/ledgers';
import { changePlan } from '../../src/domain/tenant';

afterEach(closeLedgers);

const foldOf = async (program: OpenLedger, { tenantId }: Customer): Promise<string> =>
  textOf((await program.folds.asOf(tenantId, -Infinity, soon())).fold);

const atHead = async (program: OpenLedger, { tenantId }: Customer): Promise<Fold> =>
  (await program.folds.asOf(tenantId, threadMs(), soon())).fold;

/** From scratch, event by event, without cache or snapshot. */
const plainFold = async ({ log }: OpenLedger, { tenantId }: Customer): Promise<string> => {
  const events = await eventsOf(log.readStream(streams.tenant(tenantId)));
  let fold = emptyFold;
  for (const logged of events) {
    const folding = foldingStream(fold, tenantId);
    folding.take(tenantEventOf(logged, fold.revision, tenantId, streams));
    fold = folding.fold();
  }
  return textOf(fold);
};

describe('a folded tenant', () => {
  it('is the same whether it was written here, written elsewhere, or read again', async () => {
    const folder = freshFolder();
    const [program, other] = [await openLedger(folder), await openLedger(folder)];
    const customer = await makeCustomer(program);
    await other.ledger.stateOf(customer.tenantId, soon());
    for (let i = 0; i < 5; i += 1) await program.ledger.execute(rename(customer, `Name ${i}`));
    await program.ledger.execute(byOperator(customer.tenantId, changePlan(7)));
    const plain = await plainFold(program, customer);
    expect(await foldOf(program, customer)).toBe(plain);
    expect(await textOf(await atHead(other, customer))).toBe(plain);
    expect(await foldOf(await openLedger(folder), customer)).toBe(plain);
  });

  it('stays cached while the log is briefly unreachable: a revocation once seen is not forgotten', async () => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    await atHead(program, customer);
    await program.log.close();
    await expect(atHead(program, customer)).rejects.toMatchObject({ code: 'log_unavailable' });
    expect(program.folds.peek(customer.tenantId)).toBeDefined();
  });

  it.each([1, 499, 500, 501, 1_400])(
    'with %i keys is restored from its lines, which are small',
    async (keys) => {
      const program = await openLedger(freshFolder());
      const customer = await makeCustomer(program, { expiresAt: '2040-01-01T00:00:00.000Z' });
      await addKeys(program.log, customer, keys - 1);
      const fold = await atHead(program, customer);
      for (const line of await linesOf(fold)) expect(line.length).toBeLessThan(150_000);
      const replies = { lastKey: 'a', requests: 'AAAA' };
      expect(await readSnapshot(await snapshotText({ fold, replies }))).toEqual({ fold, replies });
      expect(bytesOf(fold)).toBe(2_000 + 2_000 + 600 * keys);
    },
  );

  it('is read once and then cached', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    const again = await openLedger(folder);
    await foldOf(again, customer);
    const read = again.eventsRead();
    expect(read).toBe(3);
    for (let i = 0; i < 10; i += 1) await foldOf(again, customer);
    expect(again.eventsRead()).toBe(read);
  });

  it.each([
    ['one revision', 'revision = 7', 'revision 7'],
    ['several revisions', 'revision BETWEEN 3 AND 5', 'revisions 3 to 5'],
    ['the first revision', 'revision = 0', 'revision 0'],
  ])('allows no decision if its stream lacks %s', async (_, missing, named) => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const [customer, other] = [await makeCustomer(program), await makeCustomer(program)];
    await fillStream(program.log, customer, 10);
    const db = new DatabaseSync(join(folder, 'events.db'));
    const stream = streams.tenant(customer.tenantId);
    db.prepare(`DELETE FROM events WHERE stream = ? AND ${missing}`).run(stream);
    db.close();
    const again = await openLedger(folder);
    const reason = `Events are missing from the log: the stream ${stream} lacks ${named} before this event.`;
    await expect(again.ledger.execute(rename(customer, 'Later'))).rejects.toMatchObject({
      code: 'tenant_unreadable',
      more: { tenant_id: customer.tenantId, reason },
    });
    expect(again.folds.unreadable()).toMatchObject([{ reason }]);
    await again.ledger.execute(rename(other, 'Another'));
  });
});

describe('a snapshot', () => {
  const FILLED = 1_500;

  let original: { readonly folder: string; readonly customer: Customer; readonly fold: string };
  beforeAll(async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, FILLED);
    const fold = await textOf(await atHead(program, customer));
    await program.close();
    original = { folder, customer, fold };
  });

  /** A tenant with a long history and a saved snapshot. */
  const longHistory = () => {
    const folder = freshFolder();
    cpSync(original.folder, folder, { recursive: true });
    return { ...original, folder };
  };

  const change = (folder: string, sql: string, ...values: string[]): void => {
    const db = new DatabaseSync(join(folder, 'snapshots.db'));
    const { changes } = db.prepare(sql).run(...values);
    db.close();
    expect(changes).toBe(1);
  };

  const opensWith = async (folder: string, customer: Customer) => {
    const program = await openLedger(folder);
    const fold = await foldOf(program, customer);
    return { program, fold, read: program.eventsRead() };
  };

  it('spares a restarted program from reading the history', async () => {
    const { folder, customer, fold } = longHistory();
    const opened = await opensWith(folder, customer);
    expect(opened.fold).toBe(fold);
    expect(opened.read).toBeLessThanOrEqual(2);
  });

  it('and the events after it fold to the same state as the whole history', async () => {
    const { folder, customer } = longHistory();
    const writer = await openLedger(folder);
    for (let i = 0; i < 30; i += 1) await writer.ledger.execute(rename(customer, `Later ${i}`));
    const { program, fold, read } = await opensWith(folder, customer);
    expect(read).toBeLessThanOrEqual(2 * 31);
    expect(fold).toBe(await plainFold(program, customer));
  });

  const changeText = (next: (lines: string[]) => string[]) => (folder: string) => {
    const db = new DatabaseSync(join(folder, 'snapshots.db'));
    const { content } = db.prepare('SELECT content FROM tenants').get() as { content: Uint8Array };
    const lines = Buffer.from(content).toString().split('\n');
    const changed = Buffer.from(next(lines).join('\n'));
    expect(db.prepare('UPDATE tenants SET content = ?').run(changed).changes).toBe(1);
    db.close();
  };
  const changeStart = (change_: (start: Record<string, unknown>) => object) =>
    changeText(([start = '', ...rest]) => [
      JSON.stringify(change_(JSON.parse(start) as Record<string, unknown>)),
      ...rest,
    ]);

  it.each<[string, (folder: string) => void]>([
    ['names another event', changeStart((start) => ({ ...start, eventId: 'another' }))],
    ['names another revision', changeStart((start) => ({ ...start, revision: 7 }))],
    ['is ahead of the log', changeStart((start) => ({ ...start, revision: 999_999 }))],
    ['is truncated', changeText(([start = '']) => [start.slice(0, 200)])],
    ['has lost its tenant', changeStart(({ tenant: _tenant, ...start }) => start)],
    ['has lost its end', changeText((lines) => [...lines.slice(0, -2), ''])],
    ['has lost its last character', changeText((lines) => lines.slice(0, -1))],
    ...['null', 'no JSON'].map((text): [string, (folder: string) => void] => [
      `is the text '${text}'`,
      changeText(() => [text, '']),
    ]),
    [
      'is of another version of the fold',
      (folder) => change(folder, 'UPDATE tenants SET version = version + 1'),
    ],
    ['is of another log', (folder) => change(folder, `UPDATE tenants SET log = 'another'`)],
    ...Object.entries(fileDamages).map(([how, damage]): [string, (folder: string) => void] => [
      `is in a file that was ${how}`,
      (folder) => {
        new DatabaseSync(join(folder, 'snapshots.db')).close(); // its -wal is in it
        damage(join(folder, 'snapshots.db'), 'tenants');
      },
    ]),
  ])('is ignored if it %s', async (_, spoil) => {
    const { folder, customer, fold } = longHistory();
    spoil(folder);
    const opened = await opensWith(folder, customer);
    expect(opened.fold).toBe(fold);
    expect(opened.read).toBeGreaterThan(FILLED);
    expect((await opened.program.ledger.execute(rename(customer, 'Goes on'))).tenant).toMatchObject({
      name: 'Goes on',
    });
  });

  it('of a longer history that is gone does not prevent saving a new one', async () => {
    const { folder, customer } = longHistory();
    const restored = freshFolder();
    const writer = await openLedger(restored);
    await makeCustomer(writer, { as: customer });
    await fillStream(writer.log, customer, 800);
    await writer.close();
    for (const file of readdirSync(folder))
      if (file.startsWith('snapshots.db')) copyFileSync(join(folder, file), join(restored, file));

    const first = await opensWith(restored, customer);
    expect(first.read).toBeGreaterThan(800);
    await first.program.close();
    const second = await opensWith(restored, customer);
    expect(second.fold).toBe(first.fold);
    expect(second.read).toBeLessThanOrEqual(2);
  });
});

describe('the cost of a write', () => {
  const readBy = async (program: OpenLedger, customer: Customer, writes: number): Promise<number> => {
    const before = program.eventsRead();
    for (let i = 0; i < writes; i += 1) await program.ledger.execute(rename(customer, `Name ${i}`));
    return program.eventsRead() - before;
  };

  it('does not grow with the history, and the first one after a restart is bounded', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    expect(await readBy(program, customer, 1_000)).toBe(0);
    expect(await readBy(program, customer, 1)).toBe(0);

    const other = await openLedger(folder);
    await fillStream(other.log, customer, 19_000);
    expect(await readBy(program, customer, 1)).toBe(19_000);
    expect(await readBy(program, customer, 499)).toBe(0);
    await program.close();

    const restarted = await openLedger(folder);
    expect(await readBy(restarted, customer, 1)).toBeLessThan(6_000);
    expect(await readBy(restarted, customer, 1)).toBe(0);
  });

  it('is bounded after a restart at any point of the history', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    for (let round = 0; round < 4; round += 1) {
      await readBy(program, customer, 370);
      const restarted = await openLedger(folder);
      expect(await readBy(restarted, customer, 1)).toBeLessThanOrEqual(2 * 500 + 10);
      await restarted.close();
    }
  });
});
