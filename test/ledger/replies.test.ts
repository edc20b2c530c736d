import { DatabaseSync } from '@photostructure/sqlite';
import { copyFileSync, cpSync, existsSync, readdirSync } from 'node:fs';
import { threadMs } from '../../src/clock';
import { join } from 'node:path';
import { createApplication } from '../../src/domain/applications';
import { digestOf } from '../../src/ledger/api-key';
import { untilUnchanged } from '../../src/ledger/folds';
import { MAX_REPLIES, replyKey } from '../../src/ledger/replies';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  byKey,
  closeLedgers,
  fillStream,
  idempotent,
  makeCustomer,
  openLedger,
  rename,
  soon,
  streams,
  type Customer,
  type OpenLedger,
} from '../support/ledgers';
import { until } from '../support/waiting';

afterEach(closeLedgers);

const requestOf = (key: string) => ({ key, scope: 'PUT /tenants/self' });

const replyTo = (
  program: OpenLedger,
  { tenantId, applicationId }: Customer,
  key: string,
  request = requestOf(key),
) =>
  untilUnchanged(async () => {
    const { replies } = await program.folds.asOf(tenantId, threadMs(), soon());
    return replies.find(replyKey(applicationId, request));
  });

const inFile = <T>(folder: string, work: (db: InstanceType<typeof DatabaseSync>) => T): T => {
  const db = new DatabaseSync(join(folder, 'snapshots.db'), { timeout: 5_000 });
  try {
    return work(db);
  } finally {
    db.close();
  }
};

interface Kept {
  readonly replies: number;
  readonly revision: number;
  readonly number: number;
}

const NOTHING: Kept = { replies: 0, revision: -1, number: 0 };

const keptIn = (folder: string): Kept => {
  if (!existsSync(join(folder, 'snapshots.db'))) return NOTHING;
  const sql = 'SELECT (SELECT count(*) FROM replies) AS replies, revision, number FROM reply_marks';
  return inFile(folder, (db) => {
    const isThere = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'replies_by_number'`).get();
    return ((isThere === undefined ? undefined : db.prepare(sql).get()) ?? NOTHING) as Kept;
  });
};

const KEPT = 1_200;

const made = async (count = KEPT) => {
  const folder = freshFolder();
  const program = await openLedger(folder);
  const customer = await makeCustomer(program);
  await fillStream(program.log, customer, count);
  await program.folds.asOf(customer.tenantId, threadMs(), soon());
  await program.close();
  return { folder, customer };
};
let original: ReturnType<typeof made> | undefined;

/** A folder with a customer with this many remembered requests, all of them stored. */
const prepared = async () => {
  original ??= made();
  const folder = freshFolder();
  cpSync((await original).folder, folder, { recursive: true });
  return { ...(await original), folder };
};

describe('remembered requests', () => {
  it('are stored beside the snapshots: a restarted program finds them without reading the history', async () => {
    const { folder, customer } = await prepared();
    expect(keptIn(folder)).toEqual({ replies: 1_200, revision: 1_202, number: 1_200 });
    const again = await openLedger(folder);
    expect(await replyTo(again, customer, 'key-0')).toMatchObject({ hash: 'body', revision: 3 });
    expect(await replyTo(again, customer, 'key-1199')).toMatchObject({ revision: 1_202 });
    expect(await replyTo(again, customer, 'key-1200')).toBeUndefined();
    expect(again.eventsRead()).toBeLessThanOrEqual(2);
  });

  it('take no memory of the process once they are stored', async () => {
    const { folder, customer } = await prepared();
    const again = await openLedger(folder);
    const { replies } = await again.folds.asOf(customer.tenantId, -Infinity, soon());
    expect([replies.revision(), replies.bytes()]).toEqual([1_202, 0]);
  });

  it('are exactly the newest 10,000, whether in memory, stored, or old', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, MAX_REPLIES + 700);
    const border = async (opened: OpenLedger) => [
      await replyTo(opened, customer, 'key-699'),
      (await replyTo(opened, customer, 'key-700'))?.revision,
    ];
    expect(await border(program)).toEqual([undefined, 703]);
    await until(() => keptIn(folder).revision === MAX_REPLIES + 702);
    expect(keptIn(folder)).toMatchObject({ replies: MAX_REPLIES, number: MAX_REPLIES + 700 });
    expect(await border(program)).toEqual([undefined, 703]);
    const again = await openLedger(folder);
    expect(await border(again)).toEqual([undefined, 703]);
    // A forgotten one may come again, and is then the newest.
    await again.ledger.execute(rename(customer, 'Again', idempotent('key-699')));
    expect(await replyTo(again, customer, 'key-700')).toBeUndefined();
    expect(await replyTo(program, customer, 'key-699')).toMatchObject({ revision: MAX_REPLIES + 703 });
  });

  it('count once, however many events a request causes', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program, { permissions: ['application:create', 'tenant:update'] });
    const key = {
      keyId: customer.keyId.replace(/^./, 'f'),
      digest: digestOf('x'),
      at: '2020-01-01T00:00:00.000Z',
    };
    const application = {
      applicationId: key.keyId,
      name: 'Two',
      type: 'private' as const,
      permissions: [],
      key,
    };
    const two = idempotent('two', 'body', 'POST /applications');
    await program.ledger.execute(
      byKey(customer, createApplication(application), { ...two, permission: 'application:create' }),
    );
    await fillStream(program.log, customer, 600);
    await program.folds.asOf(customer.tenantId, threadMs(), soon());
    await until(() => keptIn(folder).number === 601);
    const reply = await replyTo(program, customer, 'two', two.idempotency);
    expect(reply?.revision).toBe(3);
  });

  it('are separate for each Application', () => {
    const request = { key: 'k', scope: 'PUT /tenants/self' };
    expect(replyKey('a', request)).not.toBe(replyKey('b', request));
  });

  it('of two programs that write and store at the same time are all found by both and by a third', async () => {
    const folder = freshFolder();
    const [first, other] = [await openLedger(folder), await openLedger(folder)];
    const customer = await makeCustomer(first);
    const count = 1_300;
    for (let n = 0; n < count; n += 2)
      await Promise.all(
        [first, other].map((program, i) =>
          program.ledger.execute(rename(customer, `N${n + i}`, idempotent(`own-${n + i}`))),
        ),
      );
    await until(() => keptIn(folder).revision >= 900);
    const revisions = new Map<string, number>();
    for (const { revision, metadata } of await eventsOf(
      first.log.readStream(streams.tenant(customer.tenantId)),
    )) {
      const { idempotency } = metadata as { idempotency?: { key: string } };
      if (idempotency !== undefined) revisions.set(idempotency.key, revision);
    }
    expect(revisions.size).toBe(count);
    for (const program of [first, other, await openLedger(folder)]) {
      const found = new Map<string, number | undefined>();
      for (const key of revisions.keys()) found.set(key, (await replyTo(program, customer, key))?.revision);
      expect(found).toEqual(revisions);
    }
    const numbers = inFile(folder, (db) => db.prepare('SELECT number FROM replies ORDER BY number').all());
    expect(numbers.map((row) => row['number'])).toEqual(numbers.map((_, i) => i + 1));
  });

  it.each<[string, string]>([
    ['of another log', `UPDATE reply_marks SET log = 'another'`],
    ['of a history that is gone', `UPDATE reply_marks SET event_id = 'another'`],
    ['beyond the log', 'UPDATE reply_marks SET revision = revision + 1000'],
    ['without their table', 'DROP TABLE replies'],
    ['without any mark', 'DELETE FROM reply_marks'],
  ])('%s are read from the stream again', async (_, sql) => {
    const { folder, customer } = await prepared();
    inFile(folder, (db) => {
      db.exec(`UPDATE replies SET revision = 5`);
      db.exec(sql);
    });
    const again = await openLedger(folder);
    expect(await replyTo(again, customer, 'key-7')).toMatchObject({ revision: 10 });
    expect(again.eventsRead()).toBeGreaterThan(1_200);
    await again.ledger.execute(rename(customer, 'Goes on', idempotent('next')));
    expect(await replyTo(again, customer, 'next')).toMatchObject({ revision: 1_203 });
  });

  it('that another program stored anew are noticed, and checked again', async () => {
    const { folder, customer } = await prepared();
    const program = await openLedger(folder);
    expect(await replyTo(program, customer, 'key-7')).toMatchObject({ revision: 10 });
    // As if another program had followed another history.
    inFile(folder, (db) => {
      db.exec(`UPDATE reply_marks SET epoch = 'another', event_id = 'another'`);
      db.exec(`UPDATE replies SET revision = 11 WHERE key LIKE '%key-7'`);
    });
    expect(await replyTo(program, customer, 'key-7')).toMatchObject({ revision: 10 });
    await program.ledger.execute(rename(customer, 'Goes on', idempotent('next')));
  });

  it('of two programs that find nothing stored and store everything at once are complete in the end', async () => {
    const folder = freshFolder();
    const [first, other] = [await openLedger(folder), await openLedger(folder)];
    const customer = await makeCustomer(first);
    await fillStream(first.log, customer, 1_800);
    await Promise.all([first, other].map(({ folds }) => folds.asOf(customer.tenantId, threadMs(), soon())));
    for (const program of [first, other, first, other]) {
      await program.ledger.execute(rename(customer, 'Next'));
      for (const n of [0, 499, 500, 501, 1_799])
        expect(await replyTo(program, customer, `key-${n}`)).toMatchObject({ revision: 3 + n });
    }
    for (const program of [first, other]) await program.close();
    const again = await openLedger(folder);
    for (let n = 0; n < 1_800; n += 1)
      expect(await replyTo(again, customer, `key-${n}`)).toMatchObject({ revision: 3 + n });
  });

  it('of another log in the same folder are replaced', async () => {
    const [first, second] = [await prepared(), await made(600)];
    for (const file of readdirSync(first.folder))
      if (file.startsWith('snapshots.db')) copyFileSync(join(first.folder, file), join(second.folder, file));
    const program = await openLedger(second.folder);
    expect(await replyTo(program, second.customer, 'key-599')).toMatchObject({ revision: 602 });
    expect(await replyTo(program, second.customer, 'key-600')).toBeUndefined();
  });
});

describe('the stored replies', () => {
  const reply = (n: number) => ({ key: `k${n}`, hash: 'h', revision: n, number: n });
  const markAt = (epoch: string, n: number) => ({
    epoch,
    revision: n,
    eventId: `event ${n}`,
    number: n,
    lastKey: `k${n}`,
  });
  const NONE = { epoch: '', revision: -1, eventId: '', number: 0, lastKey: '' };

  const opened = async () => {
    const { snapshots } = await openLedger(freshFolder());
    const { replies } = snapshots;
    expect(await replies.add('s', NONE, markAt('a', 3), [1, 2, 3].map(reply))).toEqual(markAt('a', 3));
    return replies;
  };

  it('can be extended by a program at their end, or behind it', async () => {
    const replies = await opened();
    expect(await replies.add('s', markAt('a', 3), markAt('a', 5), [4, 5].map(reply))).toEqual(markAt('a', 5));
    expect(await replies.add('s', markAt('a', 3), markAt('a', 4), [4].map(reply))).toMatchObject(
      markAt('a', 5),
    );
    expect(await replies.add('s', markAt('a', 3), markAt('a', 6), [4, 5, 6].map(reply))).toEqual(
      markAt('a', 6),
    );
    expect(replies.find('s', 'k6')).toEqual({ mark: markAt('a', 6), reply: reply(6) });
    expect(replies.find('s', 'k7')).toEqual({ mark: markAt('a', 6) });
    expect(replies.find('another', 'k6')).toEqual({});
  });

  it.each([
    ['of another epoch', markAt('b', 3)],
    ['ahead of their end', markAt('a', 4)],
  ])('cannot be extended by a program %s', async (_, from) => {
    const replies = await opened();
    expect(
      await replies.add('s', from, { ...markAt('a', 5), epoch: from.epoch }, [reply(5)]),
    ).toBeUndefined();
    expect(replies.mark('s')).toEqual(markAt('a', 3));
    expect(replies.find('s', 'k5')).toEqual({ mark: markAt('a', 3) });
  });

  it('are replaced completely by a program that starts from scratch', async () => {
    const replies = await opened();
    expect(await replies.add('s', NONE, markAt('b', 2), [reply(2)])).toEqual(markAt('b', 2));
    expect(replies.find('s', 'k1')).toEqual({ mark: markAt('b', 2) });
    expect(replies.find('s', 'k2')).toEqual({ mark: markAt('b', 2), reply: reply(2) });
  });
});
