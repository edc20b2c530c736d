import { DatabaseSync } from '@photostructure/sqlite';
import { copyFileSync, cpSync, existsSync, readdirSync } from 'node:fs';
import { threadMs } from '../../src/async/clock';
import { join } from 'node:path';
import { createApplication } from '../../src/domain/applications';
import { digestOf } from '../../src/ledger/api-key';
import { earlierRequest } from '../../src/ledger/earlier-request';
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

const MAX_REQUESTS = 10_000;

const requestOf = (key: string) => ({ key, scope: 'PUT /tenants/self' });

const foundRequest = async (
  program: OpenLedger,
  { tenantId, applicationId }: Customer,
  key: string,
  request = requestOf(key),
) => {
  const known = await program.folds.asOf(tenantId, threadMs(), soon());
  return earlierRequest({ log: program.log, streams }, known, { tenantId, applicationId, request });
};

/** The revision of the snapshot in this folder. */
const savedIn = (folder: string): number => {
  if (!existsSync(join(folder, 'snapshots.db'))) return -1;
  const db = new DatabaseSync(join(folder, 'snapshots.db'), { timeout: 5_000 });
  try {
    const { content } = db.prepare('SELECT content FROM tenants').get() as { content: Uint8Array };
    const [start = ''] = Buffer.from(content).toString().split('\n');
    return (JSON.parse(start) as { revision: number }).revision;
  } catch {
    return -1;
  } finally {
    db.close();
  }
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
  it('are part of the snapshot: a restarted program finds them without reading the history', async () => {
    const { folder, customer } = await prepared();
    expect(savedIn(folder)).toBe(1_202);
    const again = await openLedger(folder);
    expect(await foundRequest(again, customer, 'key-1200')).toBeUndefined();
    expect(again.eventsRead()).toBeLessThanOrEqual(2);
    expect(await foundRequest(again, customer, 'key-0')).toMatchObject({ hash: 'body', revision: 3 });
    expect(await foundRequest(again, customer, 'key-1199')).toMatchObject({ revision: 1_202 });
  });

  it('take little memory', async () => {
    const { folder, customer } = await prepared();
    const again = await openLedger(folder);
    const { requests } = await again.folds.asOf(customer.tenantId, -Infinity, soon());
    expect(requests.revision()).toBe(1_202);
    expect(requests.bytes()).toBeLessThanOrEqual(2_048 * 12);
  });

  it('are compared with their events, whatever their digests are', async () => {
    const { folder, customer } = await prepared();
    const again = await openLedger(folder);
    const { tenantId, applicationId } = customer;
    const known = await again.folds.asOf(tenantId, threadMs(), soon());
    const requests = { ...known.requests, find: () => [7, 10] };
    const found = (key: string) =>
      earlierRequest(
        { log: again.log, streams },
        { ...known, requests },
        { tenantId, applicationId, request: requestOf(key) },
      );
    expect(await found('key-7')).toMatchObject({ revision: 10, events: [{ revision: 10 }] });
    expect(await found('key-8')).toBeUndefined();
  });

  it('are exactly the newest 10,000, whether in memory, stored, or old', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, MAX_REQUESTS + 700);
    const border = async (opened: OpenLedger) => [
      await foundRequest(opened, customer, 'key-699'),
      (await foundRequest(opened, customer, 'key-700'))?.revision,
    ];
    expect(await border(program)).toEqual([undefined, 703]);
    await until(() => savedIn(folder) === MAX_REQUESTS + 702);
    const again = await openLedger(folder);
    expect(await border(again)).toEqual([undefined, 703]);
    // A forgotten one may come again, and is then the newest.
    await again.ledger.execute(rename(customer, 'Again', idempotent('key-699')));
    expect(await foundRequest(again, customer, 'key-700')).toBeUndefined();
    expect(await foundRequest(program, customer, 'key-699')).toMatchObject({ revision: MAX_REQUESTS + 703 });
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
    const { requests } = await program.folds.asOf(customer.tenantId, threadMs(), soon());
    expect(Buffer.from(requests.packed().requests, 'base64')).toHaveLength(601 * 10);
    const found = await foundRequest(program, customer, 'two', two.idempotency);
    expect(found?.revision).toBe(3);
  });

  it('of two programs that write and save at the same time are all found by both and by a third', async () => {
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
    await until(() => savedIn(folder) >= 900);
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
      for (const key of revisions.keys())
        found.set(key, (await foundRequest(program, customer, key))?.revision);
      expect(found).toEqual(revisions);
    }
  });

  it('of two programs that find nothing saved and save everything at once are complete in the end', async () => {
    const folder = freshFolder();
    const [first, other] = [await openLedger(folder), await openLedger(folder)];
    const customer = await makeCustomer(first);
    await fillStream(first.log, customer, 1_800);
    await Promise.all([first, other].map(({ folds }) => folds.asOf(customer.tenantId, threadMs(), soon())));
    for (const program of [first, other, first, other]) {
      await program.ledger.execute(rename(customer, 'Next'));
      for (const n of [0, 499, 500, 501, 1_799])
        expect(await foundRequest(program, customer, `key-${n}`)).toMatchObject({ revision: 3 + n });
    }
    for (const program of [first, other]) await program.close();
    const again = await openLedger(folder);
    for (let n = 0; n < 1_800; n += 1)
      expect(await foundRequest(again, customer, `key-${n}`)).toMatchObject({ revision: 3 + n });
  });

  it('of another log in the same folder are replaced', async () => {
    const [first, second] = [await prepared(), await made(600)];
    for (const file of readdirSync(first.folder))
      if (file.startsWith('snapshots.db')) copyFileSync(join(first.folder, file), join(second.folder, file));
    const program = await openLedger(second.folder);
    expect(await foundRequest(program, second.customer, 'key-599')).toMatchObject({ revision: 602 });
    expect(await foundRequest(program, second.customer, 'key-600')).toBeUndefined();
  });
});
