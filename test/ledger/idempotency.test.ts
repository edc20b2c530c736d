import { randomUUID } from 'node:crypto';
import { addKey, revokeKey } from '../../src/domain/application-keys';
import { createApplication, updateApplication } from '../../src/domain/applications';
import { deleteTenant } from '../../src/domain/tenant';
import { type EventLog, logFault } from '../../src/event-log/event-log';
import { digestOf, makeKey } from '../../src/ledger/api-key';
import type { Command, Executed } from '../../src/ledger/ledger';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  byKey,
  byOperator,
  closeLedgers,
  idempotent,
  makeCustomer,
  openLedger,
  rename,
  streams,
  type Customer,
  type OpenLedger,
} from '../support/ledgers';
import { refusedWith } from '../support/waiting';

afterEach(closeLedgers);

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

  it('is refused at once if its key was revoked through another program', async () => {
    const { folder, program, customer } = await opened();
    const other = await openLedger(folder);
    await program.ledger.execute(rename(customer, 'First', idempotent('k')));
    await other.ledger.execute(byOperator(customer.tenantId, revokeKey(customer.keyId)));
    for (const body of ['another body', 'body'])
      expect(
        await refusedWith(program.ledger.execute(rename(customer, 'First', idempotent('k', body)))),
      ).toBe('key_refused');
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
        if (silent) throw logFault('outcome_unknown', 'The answer was lost.');
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

  it('is refused with another key of the same Application', async () => {
    const { program, customer } = await opened();
    const digest = digestOf(makeKey(customer.tenantId));
    const another = addKey(customer.applicationId, { keyId: randomUUID(), digest });
    await program.ledger.execute(byOperator(customer.tenantId, another));
    await program.ledger.execute(deletion(customer));
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
