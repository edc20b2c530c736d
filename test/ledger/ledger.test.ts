import { randomUUID } from 'node:crypto';
import { monotonicMs, threadMs } from '../../src/async/clock';
import { addKey, regenerateKey, revokeKey } from '../../src/domain/application-keys';
import { deleteApplication, updateApplication } from '../../src/domain/applications';
import {
  changePlan,
  mustBeActive,
  mustHave,
  updateTenant,
  type Decide,
  type Tenant,
} from '../../src/domain/tenant';
import type { EventLog, LoggedEvent } from '../../src/event-log/event-log';
import { codeOf } from '../../src/fault';
import { tenantEventOf } from '../../src/ledger/fold';
import { anEvent, eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  byKey,
  byOperator,
  fillStream,
  idempotent,
  ifAt,
  makeCustomer,
  openLedger,
  rename,
  streams,
  type Customer,
  type OpenLedger,
  soon,
} from '../support/ledgers';
import { editLog } from '../support/sqlite-logs';
import { refusedWith, deferred } from '../support/waiting';

const historyOf = ({ log }: OpenLedger, { tenantId }: Customer) =>
  eventsOf(log.readStream(streams.tenant(tenantId)));

const twoLedgers = async (input: Parameters<typeof makeCustomer>[1] = {}) => {
  const folder = freshFolder();
  const [program, other] = [await openLedger(folder), await openLedger(folder)];
  const customer = await makeCustomer(program, input);
  await tenantIn(other, customer);
  return { folder, program, other, customer };
};

const tenantIn = ({ ledger }: OpenLedger, { tenantId }: Pick<Customer, 'tenantId'>) =>
  ledger.ask(tenantId, soon(), (tenant) => ({ ...tenant }));

const applicationIn = (tenant: Tenant, { applicationId }: Customer) =>
  mustHave(mustBeActive(tenant), applicationId);

const addOne: Decide = (now, question) =>
  changePlan((now.status === 'active' ? now.includedMonthlyActiveTokens : Number.NaN) + 1)(now, question);

describe('a write', () => {
  it('that does not match its schema never reaches the log', async () => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    await expect(program.ledger.execute(byOperator(customer.tenantId, changePlan(-1)))).rejects.toThrow(
      'does not fit its schema',
    );
    expect(await historyOf(program, customer)).toHaveLength(3);
  });

  it('says whether its append was shown at once, and never so when it is repeated', async () => {
    let isShown: { readonly isShown?: true } = {};
    const program = await openLedger(freshFolder(), (log) => ({
      ...log,
      append: async (...given) => ({ ...(await log.append(...given)), ...isShown }),
    }));
    const customer = await makeCustomer(program);
    const write = async (key: string) =>
      (await program.ledger.execute(rename(customer, 'B', idempotent(key)))).isShown;
    expect(await write('1')).toBeUndefined();
    isShown = { isShown: true };
    expect([await write('2'), await write('2')]).toEqual([true, undefined]);
  });

  describe('returns exactly what it made,', () => {
    /** A program, and what happens right after each of its appends: it learns what another one has written. */
    const interrupted = async (theirs: (other: OpenLedger, customer: Customer) => Promise<unknown>) => {
      const folder = freshFolder();
      const other = await openLedger(folder);
      const customer = await makeCustomer(other);
      const program: OpenLedger = await openLedger(folder, (log) => ({
        ...log,
        append: async (...input) => {
          const appended = await log.append(...input);
          await theirs(other, customer);
          await program.folds.asOf(customer.tenantId, threadMs(), soon());
          return appended;
        },
      }));
      return { program, customer };
    };

    it('even if another program has written and been read since', async () => {
      const { program, customer } = await interrupted((other, of) =>
        other.ledger.execute(rename(of, 'Theirs')),
      );
      const { tenant } = await program.ledger.execute(rename(customer, 'Mine'));
      expect(tenant).toMatchObject({ name: 'Mine', revision: 3 });
      const { tenant: known } = await program.folds.asOf(customer.tenantId, -Infinity, soon());
      expect(known).toMatchObject({ name: 'Theirs', revision: 4 });
    });

    it('the keys of its Application too', async () => {
      const theirKey = { keyId: randomUUID(), digest: 'b'.repeat(64) };
      const { program, customer } = await interrupted(async (other, { tenantId, applicationId }) => {
        await other.ledger.execute(byOperator(tenantId, addKey(applicationId, theirKey)));
        await other.ledger.execute(
          byOperator(tenantId, updateApplication(applicationId, { name: 'Theirs' })),
        );
      });
      const { tenantId, applicationId } = customer;
      const mine = { keyId: randomUUID(), digest: 'c'.repeat(64) };
      const { tenant } = await program.ledger.execute(
        byOperator(tenantId, regenerateKey(applicationId, mine, 0)),
      );
      const application = applicationIn(tenant, customer);
      expect(application).toMatchObject({ name: 'Desk', revision: 4 });
      expect([...application.keys.keys()]).toEqual([mine.keyId]);
      expect(applicationIn(await tenantIn(program, customer), customer)).toMatchObject({
        name: 'Theirs',
        revision: 6,
      });
    });

    it('whatever is written later', async () => {
      const program = await openLedger(freshFolder());
      const customer = await makeCustomer(program);
      const { tenantId, applicationId } = customer;
      const first = await program.ledger.execute(
        byOperator(tenantId, updateApplication(applicationId, { name: 'First' })),
      );
      const before = structuredClone(first.tenant);
      await program.ledger.execute(
        byOperator(tenantId, addKey(applicationId, { keyId: randomUUID(), digest: 'c'.repeat(64) })),
      );
      await program.ledger.execute(byOperator(tenantId, deleteApplication(applicationId)));
      expect(first.tenant).toEqual(before);
    });

    it('again to whoever repeats it', async () => {
      const program = await openLedger(freshFolder());
      const customer = await makeCustomer(program, { permissions: ['application:update'] });
      const { tenantId, applicationId } = customer;
      const update = (name: string, permissions: readonly string[]) =>
        updateApplication(applicationId, { name, permissions });
      const request = byKey(customer, update('First', ['application:update']), {
        permission: 'application:update',
        ...idempotent('k', 'body', 'PUT /applications'),
      });
      const first = await program.ledger.execute(request);
      await program.ledger.execute(
        byOperator(tenantId, update('Second', ['application:update', 'log:read'])),
      );
      const { tenant, isRepeat } = await program.ledger.execute(request);
      expect(isRepeat).toBe(true);
      expect(applicationIn(tenant, customer)).toEqual(applicationIn(first.tenant, customer));
      await program.ledger.execute(byOperator(tenantId, changePlan(1)));
      expect(applicationIn(await tenantIn(program, customer), customer)).toMatchObject({ name: 'Second' });
    });
  });
});

describe('the changes stored with an event', () => {
  const changesIn = ({ metadata }: LoggedEvent): unknown => (metadata as { changes?: unknown }).changes;

  it('are those to the state that it was decided on, not to one that was overtaken', async () => {
    const { program, other, customer } = await twoLedgers();
    await program.ledger.execute(rename(customer, 'New'));
    await other.ledger.execute(rename(customer, 'Newer'));
    const [, , , first, second] = (await historyOf(program, customer)).map(changesIn);
    expect(first).toEqual([{ field: 'name', from: 'Acme', to: 'New' }]);
    expect(second).toEqual([{ field: 'name', from: 'New', to: 'Newer' }]);
  });

  it('are those to the state that the events before it leave, within one request too', async () => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    const twice: Decide = (now, context) => [...changePlan(1)(now, context), ...changePlan(2)(now, context)];
    await program.ledger.execute(byOperator(customer.tenantId, twice));
    const field = 'included_monthly_active_tokens';
    expect((await historyOf(program, customer)).map(changesIn)).toEqual([
      [],
      [],
      [],
      [{ field, from: 0, to: 1 }],
      [{ field, from: 1, to: 2 }],
    ]);
  });
});

describe('a fold that advances between a decision and its append', () => {
  /** What another program has appended, as this one would have read it. */
  const lastEventOf = async (program: OpenLedger, customer: Customer) => {
    const logged = (await historyOf(program, customer)).at(-1)!;
    return tenantEventOf(logged, logged.revision - 1, customer.tenantId, streams);
  };

  it('changes nothing about it: the decision holds at the revision that it was made at, or is made again', async () => {
    const { program, other, customer } = await twoLedgers();
    const { tenantId } = customer;
    const known = await program.folds.asOf(tenantId, -Infinity, soon());
    await other.ledger.execute(rename(customer, 'Meanwhile'));
    const meanwhile = await lastEventOf(other, customer);
    const seen: unknown[] = [];
    const decide: Decide = (now, context) => {
      seen.push(now.status === 'active' && now.name);
      program.folds.advance(tenantId, known, [meanwhile], threadMs());
      return updateTenant({ name: 'Mine', settings: {} })(now, context);
    };
    await program.ledger.execute(byKey(customer, decide));
    expect(seen).toEqual(['Acme', 'Meanwhile']);
    const changes = (await historyOf(program, customer)).map(
      ({ metadata }) => (metadata as { changes?: unknown }).changes,
    );
    expect(changes.slice(3)).toEqual([
      [{ field: 'name', from: 'Acme', to: 'Meanwhile' }],
      [{ field: 'name', from: 'Meanwhile', to: 'Mine' }],
    ]);
  });

  it('gives a key no time to write after its revocation', async () => {
    const { program, other, customer } = await twoLedgers();
    const { tenantId, keyId } = customer;
    const known = await program.folds.asOf(tenantId, -Infinity, soon());
    await other.ledger.execute(byOperator(tenantId, revokeKey(keyId)));
    const revocation = await lastEventOf(other, customer);
    const decide: Decide = (now, context) => {
      program.folds.advance(tenantId, known, [revocation], threadMs());
      return updateTenant({ name: 'Too late', settings: {} })(now, context);
    };
    expect(await refusedWith(program.ledger.execute(byKey(customer, decide)))).toBe('key_refused');
    expect(await historyOf(program, customer)).toHaveLength(4);
  });

  it('starts it over if the request that it repeats was made again while that was looked up', async () => {
    const folder = freshFolder();
    const other = await openLedger(folder);
    const customer = await makeCustomer(other);
    let lookups = 0;
    const program: OpenLedger = await openLedger(folder, (log) => ({
      ...log,
      readStream: async function* (stream, after) {
        if (after === 2) lookups += 1;
        // The first look is in the cached state, which is not relied on.
        if (after === 2 && lookups === 2) {
          await fillStream(other.log, customer, 1);
          await program.folds.asOf(customer.tenantId, threadMs(), soon());
        }
        yield* log.readStream(stream, after);
      },
    }));
    const request = rename(customer, 'First', idempotent('key-0'));
    expect((await program.ledger.execute(request)).events).toMatchObject([{ revision: 3 }]);
    await program.ledger.execute(rename(customer, 'Between'));
    // As after it was forgotten, so the newest answer counts.
    expect(await program.ledger.execute(request)).toMatchObject({
      isRepeat: true,
      events: [{ revision: 5, data: { name: 'Filled 0' } }],
    });
    expect(lookups).toBe(2);
  });
});

describe('If-Match', () => {
  it('goes by what another program has just written, in both directions', async () => {
    const { program, other, customer } = await twoLedgers();
    await program.ledger.execute(rename(customer, 'New'));
    expect(await refusedWith(other.ledger.execute(rename(customer, 'Old', ifAt(0))))).toBe(
      'precondition_failed',
    );
    await program.ledger.execute(rename(customer, 'Newer'));
    expect((await other.ledger.execute(rename(customer, 'Newest', ifAt(4)))).tenant).toMatchObject({
      revision: 5,
    });
  });

  it('accepts exactly one of a hundred writers at each revision, across two programs', async () => {
    const { program, other, customer } = await twoLedgers();
    for (let round = 0; round < 4; round += 1) {
      const seen = round === 0 ? 0 : 2 + round;
      const codes = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          refusedWith(
            (i % 2 === 0 ? program : other).ledger.execute(rename(customer, `Writer ${i}`, ifAt(seen))),
          ),
        ),
      );
      expect(codes.filter((code) => code === 'no refusal')).toHaveLength(1);
      expect(codes.filter((code) => code === 'precondition_failed')).toHaveLength(99);
    }
    expect(await historyOf(program, customer)).toHaveLength(3 + 4);
  });

  it('reads the stream at most once for all that were waiting', async () => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    const before = program.streamReads();
    const writers = Array.from({ length: 50 }, (_, n) =>
      program.ledger.execute(rename(customer, `${n}`, ifAt(0))),
    );
    const codes = (await Promise.allSettled(writers)).map((result) =>
      result.status === 'fulfilled' ? 'written' : codeOf(result.reason),
    );
    expect(codes).toEqual(['written', ...Array.from({ length: 49 }, () => 'precondition_failed')]);
    expect(program.streamReads() - before).toBeLessThanOrEqual(1);
  });
});

describe('writers of two programs', () => {
  it('lose no update: the loser of a race decides again', async () => {
    const { program, other, customer } = await twoLedgers();
    const writes = Array.from({ length: 80 }, (_, i) =>
      (i % 2 === 0 ? program : other).ledger.execute(byOperator(customer.tenantId, addOne)),
    );
    const answers = await Promise.all(writes);
    const counts = answers.map(
      ({ tenant }) => tenant.status === 'active' && tenant.includedMonthlyActiveTokens,
    );
    expect(counts.toSorted((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 80 }, (_, i) => i + 1),
    );
    expect(new Set(answers.map(({ position }) => position)).size).toBe(80);
    expect(await historyOf(program, customer)).toHaveLength(3 + 80);
  });
});

describe('the head of the stream decides:', () => {
  it('a write is refused at once when its permission was withdrawn through another program', async () => {
    const { program, other, customer } = await twoLedgers();
    await program.ledger.execute(
      byOperator(customer.tenantId, updateApplication(customer.applicationId, { permissions: ['log:read'] })),
    );
    await expect(other.ledger.execute(rename(customer, 'Too late'))).rejects.toMatchObject({
      code: 'permission_missing',
      more: { required_permission: 'tenant:update', application_type: 'management', assignable: true },
    });
  });

  it('a write is accepted at once when its permission was granted through another program', async () => {
    const { program, other, customer } = await twoLedgers({ permissions: ['log:read'] });
    expect(await refusedWith(other.ledger.execute(rename(customer, 'Too early')))).toBe('permission_missing');
    await program.ledger.execute(
      byOperator(
        customer.tenantId,
        updateApplication(customer.applicationId, { permissions: ['tenant:update'] }),
      ),
    );
    expect((await other.ledger.execute(rename(customer, 'Now'))).tenant).toMatchObject({ name: 'Now' });
  });
});

describe('a tenant whose history cannot be read', () => {
  const heal = (folder: string, id: string): void =>
    editLog(
      folder,
      `UPDATE events SET type = 'TenantPlanChanged', data = '{"includedMonthlyActiveTokens":9}' WHERE id = '${id}'`,
    );

  it('accepts no write until it is repaired, and affects no other tenant', async () => {
    const { folder, program, other, customer } = await twoLedgers();
    const neighbour = await makeCustomer(program);
    const poison = anEvent();
    await program.log.append(streams.tenant(customer.tenantId), [poison], 2);

    for (const reader of [program, other]) {
      await expect(reader.ledger.execute(rename(customer, 'New'))).rejects.toMatchObject({
        code: 'tenant_unreadable',
        more: {
          tenant_id: customer.tenantId,
          event_id: poison.id,
          reason: expect.stringContaining('unknown'),
        },
      });
      expect(reader.ledger.unreadable()).toMatchObject([{ event_id: poison.id }]);
      await reader.ledger.execute(rename(neighbour, 'Goes on'));
    }
    expect(await refusedWith(tenantIn(program, customer))).toBe('tenant_unreadable');
    expect(await historyOf(program, customer)).toHaveLength(4);

    heal(folder, poison.id);
    for (const reader of [program, other]) {
      const { tenant } = await reader.ledger.execute(rename(customer, 'Healed'));
      expect(tenant).toMatchObject({ name: 'Healed', includedMonthlyActiveTokens: 9 });
      expect(reader.ledger.unreadable()).toEqual([]);
    }
  });

  it.each<[string, Parameters<typeof anEvent>]>([
    [
      'cannot follow the events before it',
      [{ applicationId: randomUUID(), name: 'x', permissions: [] }, { type: 'ApplicationUpdated' }],
    ],
    ['does not fit its schema', [{ includedMonthlyActiveTokens: 'many' }, { type: 'TenantPlanChanged' }]],
    ['has an impossible time', [{}, { type: 'TenantDeleted', metadata: { at: '2016-12-31T23:59:60Z' } }]],
  ])('is one with an event that %s', async (_, poison) => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    await program.log.append(streams.tenant(customer.tenantId), [anEvent(...poison)], 2);
    expect(await refusedWith(program.ledger.execute(rename(customer, 'New')))).toBe('tenant_unreadable');
  });

  it('is not one with a bad fact in its activity stream, on which no decision depends', async () => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    await program.log.append(streams.activity(customer.tenantId), [anEvent()], 'no_stream');
    await program.ledger.execute(rename(customer, 'New'));
  });
});

describe('the deadline of a write', () => {
  it('prevents it once it has passed', async () => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    for (const deadline of [0, monotonicMs(), monotonicMs() + 40])
      expect(await refusedWith(program.ledger.execute(rename(customer, 'Late', { deadline })))).toBe(
        'log_unavailable',
      );
    expect(await historyOf(program, customer)).toHaveLength(3);
  });

  it('includes the wait behind another write', async () => {
    const hold = deferred();
    let holding = false;
    const around = (log: EventLog): EventLog => ({
      ...log,
      append: async (...input) => {
        if (holding) await hold.promise;
        return log.append(...input);
      },
    });
    const program = await openLedger(freshFolder(), around);
    const customer = await makeCustomer(program);
    const neighbour = await makeCustomer(program);
    holding = true;
    const first = program.ledger.execute(rename(customer, 'First'));
    const second = program.ledger.execute(rename(customer, 'Second', { deadline: monotonicMs() + 200 }));
    expect(await refusedWith(second)).toBe('log_unavailable');
    holding = false;
    await program.ledger.execute(rename(neighbour, 'Not held up'));
    hold.resolve();
    await first;
    expect(await historyOf(program, customer)).toHaveLength(4);
  });
});
