import { randomUUID } from 'node:crypto';
import { threadMs } from '../../src/async/clock';
import { addKey, revokeKey } from '../../src/domain/application-keys';
import { createApplication, updateApplication } from '../../src/domain/applications';
import { deleteTenant } from '../../src/domain/tenant';
import type { EventLog } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { digestOf, makeKey } from '../../src/ledger/api-key';
import { earlierRequest } from '../../src/ledger/fold';
import type { Command, Executed } from '../../src/ledger/ledger';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  byKey,
  byOperator,
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
import { refusedWith } from '../support/waiting';

const countOf = async ({ log }: OpenLedger, { tenantId }: Customer): Promise<number> =>
  (await eventsOf(log.readStream(streams.tenant(tenantId)))).length;

const opened = async () => {
  const folder = freshFolder();
  const program = await openLedger(folder);
  const customer = await makeCustomer(program);
  return { folder, program, customer, before: await countOf(program, customer) };
};

const asRepeat = (first: Executed | undefined): object => ({ ...first, isRepeat: true });

describe('a request repeated with its idempotency key', () => {
  it('is refused if the permission has been withdrawn in the meantime', async () => {
    const { program, customer } = await opened();
    await program.ledger.execute(rename(customer, 'First', idempotent('k')));
    await program.ledger.execute(
      byOperator(customer.tenantId, updateApplication(customer.applicationId, { permissions: [] })),
    );
    expect(await refusedWith(program.ledger.execute(rename(customer, 'First', idempotent('k'))))).toBe(
      'permission_missing',
    );
  });

  it.each(['body', 'another body'])('is refused if its key was revoked elsewhere: %s', async (body) => {
    const { folder, program, customer } = await opened();
    const other = await openLedger(folder);
    await program.ledger.execute(rename(customer, 'First', idempotent('k')));
    await other.ledger.execute(byOperator(customer.tenantId, revokeKey(customer.keyId)));
    const repeated = program.ledger.execute(rename(customer, 'First', idempotent('k', body)));
    expect(await refusedWith(repeated)).toBe('key_refused');
  });

  it('gets its own events alone, although the next request had the same key', async () => {
    const { program, customer } = await opened();
    const { tenantId } = customer;
    const [applicationId, keyId, digest] = [randomUUID(), randomUUID(), digestOf(makeKey(tenantId))];
    const key = { keyId, digest };
    const permissions = ['tenant:update'];
    const neighbour = { applicationId, name: 'Other', type: 'management' as const, permissions, key };
    await program.ledger.execute(byOperator(tenantId, createApplication(neighbour)));
    const requests = [
      rename(customer, 'First', idempotent('k')),
      rename(customer, 'In another scope', idempotent('k', 'body', 'PUT /two')),
      rename(
        { ...customer, applicationId, keyId, digest },
        'By another',
        idempotent('k', 'body', 'PUT /two'),
      ),
    ];
    const answers = [];
    for (const request of requests) answers.push(await program.ledger.execute(request));
    for (const [i, request] of requests.entries()) {
      expect(answers[i]!.events).toHaveLength(1);
      expect(await program.ledger.execute(request)).toMatchObject(asRepeat(answers[i]));
    }
  });

  it('gets "in progress" while the first is executed', async () => {
    const { program, customer, before } = await opened();
    const first = program.ledger.execute(rename(customer, 'First', idempotent('k')));
    const second = refusedWith(program.ledger.execute(rename(customer, 'First', idempotent('k'))));
    const other = program.ledger.execute(rename(customer, 'Other', idempotent('other')));
    expect(await second).toBe('idempotency_in_progress');
    await other;
    expect(await program.ledger.execute(rename(customer, 'First', idempotent('k')))).toMatchObject(
      asRepeat(await first),
    );
    expect(await countOf(program, customer)).toBe(before + 2);
  });

  it('resolves an unknown outcome', async () => {
    const folder = freshFolder();
    let silent = false;
    const around = (log: EventLog): EventLog => ({
      ...log,
      append: async (...input) => {
        const appended = await log.append(...input);
        if (silent) throw fault('outcome_unknown', 'The answer was lost.');
        return appended;
      },
    });
    const program = await openLedger(folder, around);
    const customer = await makeCustomer(program);
    const before = await countOf(program, customer);
    silent = true;
    expect(await refusedWith(program.ledger.execute(rename(customer, 'First', idempotent('k'))))).toBe(
      'outcome_unknown',
    );
    silent = false;
    const again = await program.ledger.execute(rename(customer, 'First', idempotent('k')));
    expect(again.tenant).toMatchObject({ name: 'First' });
    expect(await countOf(program, customer)).toBe(before + 1);
  });
});

describe('a race with one idempotency key between two programs', () => {
  it("gives the loser the winner's response", async () => {
    const folder = freshFolder();
    const other = await openLedger(folder);
    const customer = await makeCustomer(other);
    const before = await countOf(other, customer);
    let winner: unknown;
    const around = (log: EventLog): EventLog => ({
      ...log,
      append: async (...input) => {
        winner ??= await other.ledger.execute(rename(customer, 'First', idempotent('k')));
        return log.append(...input);
      },
    });
    const program = await openLedger(folder, around);
    const answer = await program.ledger.execute(rename(customer, 'First', idempotent('k')));
    expect(winner).toBeDefined();
    expect(answer).toMatchObject({ ...(winner as object), isRepeat: true });
    expect(await countOf(program, customer)).toBe(before + 1);
  });
});

describe('a deletion repeated with its idempotency key', () => {
  const deletion = (customer: Customer, more: Partial<Command> = {}): Command =>
    byKey(customer, deleteTenant(), {
      permission: 'tenant:delete',
      ...idempotent('d', 'no body', 'DELETE /tenants/self'),
      ...more,
    });

  it('is refused with another key of the same Application, and so is any request before it', async () => {
    const { program, customer } = await opened();
    const digest = digestOf(makeKey(customer.tenantId));
    const another = addKey(customer.applicationId, { keyId: randomUUID(), digest });
    await program.ledger.execute(byOperator(customer.tenantId, another));
    const earlier = rename(customer, 'First', idempotent('k'));
    await program.ledger.execute(earlier);
    await program.ledger.execute(deletion(customer));
    expect(await refusedWith(program.ledger.execute(earlier))).toBe('key_refused');
    expect(await refusedWith(program.ledger.execute(deletion({ ...customer, digest })))).toBe('key_refused');
    expect(await program.ledger.execute(deletion(customer))).toMatchObject({ isRepeat: true });
  });

  it('is refused once its key has expired', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program, { expiresAt: '2026-01-02T00:00:00.000Z' });
    await program.ledger.execute(deletion(customer, { at: '2026-01-01T23:59:59.999Z' }));
    await program.ledger.execute(deletion(customer, { at: '2026-01-01T23:59:59.999Z' }));
    expect(
      await refusedWith(program.ledger.execute(deletion(customer, { at: '2026-01-02T00:00:00.000Z' }))),
    ).toBe('key_refused');
  });
});

const MAX_REQUESTS = 10_000;

const requestOf = (key: string) => ({ key, scope: 'PUT /tenants/self' });

const foundRequest = async (
  program: OpenLedger,
  { tenantId, applicationId }: Customer,
  key: string,
  request = requestOf(key),
) => {
  const { requests } = await program.folds.asOf(tenantId, threadMs(), soon());
  const repeatable = { tenantId, applicationId, request };
  const revision = requests.find(applicationId, request);
  return revision === undefined
    ? undefined
    : earlierRequest({ log: program.log, streams }, repeatable, revision);
};

describe('remembered requests', () => {
  it('are found again by a restarted program, and take little memory', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, 1_200);
    const again = await openLedger(folder);
    expect(await foundRequest(again, customer, 'key-1200')).toBeUndefined();
    expect(await foundRequest(again, customer, 'key-0')).toMatchObject({ hash: 'body', revision: 3 });
    expect(await foundRequest(again, customer, 'key-1199')).toMatchObject({ revision: 1_202 });
    const { requests } = await again.folds.asOf(customer.tenantId, -Infinity, soon());
    expect(requests.bytes()).toBe(1_200 * 64);
  });

  it('are compared with their events, whatever their digests are', async () => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, 20);
    const { tenantId, applicationId } = customer;
    const at = (key: string, revision: number) =>
      earlierRequest(
        { log: program.log, streams },
        { tenantId, applicationId, request: requestOf(key) },
        revision,
      );
    expect(await at('key-7', 10)).toMatchObject({ revision: 10, events: [{ revision: 10 }] });
    expect(await at('key-8', 10)).toBeUndefined();
    expect(await at('key-8', 2)).toBeUndefined();
    expect(await at('key-8', 99)).toBeUndefined();
  });

  it('are exactly the newest 10,000, whether here or after a restart', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, MAX_REQUESTS + 700);
    const border = async (one: OpenLedger) => [
      await foundRequest(one, customer, 'key-699'),
      (await foundRequest(one, customer, 'key-700'))?.revision,
    ];
    expect(await border(program)).toEqual([undefined, 703]);
    const again = await openLedger(folder);
    expect(await border(again)).toEqual([undefined, 703]);
    // A forgotten one may come again, and is then the newest.
    await again.ledger.execute(rename(customer, 'Again', idempotent('key-699')));
    expect(await foundRequest(again, customer, 'key-700')).toBeUndefined();
    expect(await foundRequest(program, customer, 'key-699')).toMatchObject({ revision: MAX_REQUESTS + 703 });
  });
});
