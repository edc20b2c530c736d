import { randomUUID } from 'node:crypto';
import { monotonicMs } from '../../src/async/clock';
import { addKey, revokeKey } from '../../src/domain/application-keys';
import { deleteApplication, updateApplication } from '../../src/domain/applications';
import { isRefusal } from '../../src/domain/refusal';
import { deleteTenant, updateTenant, type Decide } from '../../src/domain/tenant';
import type { EventLog } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { digestOf, type Identity, type PresentedKey } from '../../src/ledger/api-key';
import type { FoldsOptions } from '../../src/ledger/folds';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  byOperator,
  makeCustomer,
  openLedger,
  soon,
  streams,
  type Customer,
  type OpenLedger,
} from '../support/ledgers';
import { passTime } from '../support/pass-time';
import { deferred, refusedWith } from '../support/waiting';

type Outcome = ({ readonly status: 'valid' } & Identity) | { readonly status: string };

const outcomeOf = (identified: Promise<Identity>): Promise<Outcome> =>
  identified.then(
    (identity) => ({ status: 'valid', ...identity }),
    (error: unknown) => {
      if (!isRefusal(error)) throw error;
      return { status: String(error.more['reason']) };
    },
  );

const permissionsOf = (found: Outcome) => ('application' in found ? found.application.permissions : []);

const presented = ({ tenantId, digest }: Customer, more: Partial<PresentedKey> = {}): PresentedKey => ({
  tenantId,
  digest,
  at: new Date().toISOString(),
  deadline: soon(),
  ...more,
});

const other = (customer: Customer): Customer => ({ ...customer, digest: digestOf(randomUUID()) });

const READ_AGE_MS = 500;

/** A log as an event store is one: it cannot tell whether anything was appended. */
const withoutToken = ({ changeToken: _token, ...log }: EventLog): EventLog => log;

interface Away {
  readonly log: (log: EventLog) => EventLog;
  be(now: 'there' | 'silent' | 'failing'): void;
}

/** A log that may stop to answer. */
const mayBeAway = (): Away => {
  let mode: 'there' | 'silent' | 'failing' = 'there';
  const silence = deferred();
  return {
    be: (now) => {
      if (now === 'there') silence.resolve();
      mode = now;
    },
    log: (log) => ({
      ...withoutToken(log),
      readStream: async function* (...from) {
        if (mode === 'silent') await silence.promise;
        if (mode === 'failing') throw fault('log_unavailable', 'No connection.');
        yield* log.readStream(...from);
      },
    }),
  };
};

/** Two processes on one log, of which the first identifies. */
const prepared = async (around = (log: EventLog) => log, options: Partial<FoldsOptions> = {}) => {
  const folder = freshFolder();
  const [here, elsewhere] = [await openLedger(folder, around, options), await openLedger(folder)];
  let reads = 0;
  return {
    here,
    elsewhere,
    customer: () => makeCustomer(elsewhere),
    reading: (key: Customer, more: Partial<PresentedKey> = {}) =>
      outcomeOf(here.ledger.identify(presented(key, more), READ_AGE_MS)),
    asOfNow: (key: Customer, more: Partial<PresentedKey> = {}) =>
      outcomeOf(here.ledger.identify(presented(key, more), 0)),
    toStartWriting: (key: Customer, more: Partial<PresentedKey> = {}) =>
      outcomeOf(here.ledger.identify(presented(key, { isWrite: true, ...more }), Infinity)),
    readsSince: () => {
      const since = here.streamReads() - reads;
      reads += since;
      return since;
    },
  };
};

const write = (by: OpenLedger, { tenantId }: Customer, decide: Decide) =>
  by.ledger.execute(byOperator(tenantId, decide));

const endings: readonly [string, string, (customer: Customer) => Decide][] = [
  ['is revoked', 'revoked', ({ keyId }) => revokeKey(keyId)],
  ['loses its Application', 'application_deleted', ({ applicationId }) => deleteApplication(applicationId)],
  ['loses its tenant', 'tenant_deleted', () => deleteTenant()],
];

describe('a key', () => {
  it('is valid, and for 500 ms its stream is not read again', async () => {
    const { customer, reading, readsSince, elsewhere } = await prepared(withoutToken);
    const [key, neighbour] = [await customer(), await customer()];
    const endsAt = monotonicMs() + READ_AGE_MS - 100;
    expect(await reading(key)).toMatchObject({ status: 'valid', keyId: key.keyId });
    readsSince();
    for (let i = 0; i < 20 && monotonicMs() < endsAt; i += 1) {
      await write(elsewhere, neighbour, updateTenant({ name: `N${i}`, settings: {} }));
      expect((await reading(key)).status).toBe('valid');
    }
    if (monotonicMs() < endsAt) expect(readsSince()).toBe(0);
  });

  it('after that is read once for all requests of its tenant', async () => {
    const { customer, reading, readsSince } = await prepared(withoutToken);
    const key = await customer();
    await reading(key);
    readsSince();
    passTime(READ_AGE_MS + 10);
    await Promise.all(Array.from({ length: 50 }, () => reading(key)));
    expect(readsSince()).toBe(1);
  });

  it('costs no read at all while nothing is appended, if the log can tell', async () => {
    const { customer, asOfNow, readsSince, elsewhere } = await prepared();
    const [key, neighbour] = [await customer(), await customer()];
    await asOfNow(key);
    readsSince();
    for (let i = 0; i < 50; i += 1) {
      expect((await asOfNow(key)).status).toBe('valid');
      expect((await asOfNow(other(key))).status).toBe('unknown');
    }
    expect(readsSince()).toBe(0);
    await write(elsewhere, neighbour, updateTenant({ name: 'Else', settings: {} }));
    await asOfNow(key);
    expect(readsSince()).toBe(1);
  });

  it.each(endings)(
    'that %s through another process is refused half a second later',
    async (_, status, what) => {
      for (const around of [withoutToken, (log: EventLog) => log]) {
        const { customer, reading, asOfNow, elsewhere } = await prepared(around);
        const [key, neighbour] = [await customer(), await customer()];
        expect((await reading(key)).status).toBe('valid');
        await write(elsewhere, key, what(key));
        passTime(READ_AGE_MS);
        expect((await reading(key)).status).toBe(status);
        expect((await asOfNow(key)).status).toBe(status);
        expect((await reading(neighbour)).status).toBe('valid');
      }
    },
  );

  it.each(endings)('that %s through this process is refused at once', async (_, status, what) => {
    const { customer, reading, here } = await prepared(withoutToken);
    const key = await customer();
    expect((await reading(key)).status).toBe('valid');
    await write(here, key, what(key));
    expect((await reading(key)).status).toBe(status);
  });

  it('whose revocation was seen is refused at once', async () => {
    const { customer, reading, asOfNow, elsewhere } = await prepared(withoutToken);
    const key = await customer();
    expect((await reading(key)).status).toBe('valid');
    await write(elsewhere, key, revokeKey(key.keyId));
    expect((await asOfNow(key)).status).toBe('revoked');
    expect((await reading(key)).status).toBe('revoked');
  });

  it('has the permissions of its Application: at once, or half a second after another process changed them', async () => {
    const { customer, reading, asOfNow, here, elsewhere } = await prepared(withoutToken);
    const key = await customer();
    await reading(key);
    const permit = (permission: string) =>
      updateApplication(key.applicationId, { permissions: [permission] });
    await write(here, key, permit('log:read'));
    expect(permissionsOf(await reading(key))).toEqual(['log:read']);
    await write(elsewhere, key, permit('tenant:read'));
    expect(permissionsOf(await asOfNow(key))).toEqual(['tenant:read']);
    await write(elsewhere, key, permit('log:read'));
    passTime(READ_AGE_MS);
    expect(permissionsOf(await reading(key))).toEqual(['log:read']);
  });

  it('is refused from the moment it expires, however long it is in memory', async () => {
    const { customer, reading, elsewhere } = await prepared();
    const key = await customer();
    const digest = digestOf(randomUUID());
    const expiring = { keyId: randomUUID(), digest, expiresAt: '2130-01-01T00:00:00.000Z' };
    await write(elsewhere, key, addKey(key.applicationId, expiring));
    const at = async (moment: string) => (await reading({ ...key, digest }, { at: moment })).status;
    expect(await at('2129-12-31T23:59:59.999Z')).toBe('valid');
    expect(await at('2130-01-01T00:00:00.000Z')).toBe('expired');
  });
});

describe('a refusal', () => {
  it('is given only after a look as of now: a key that was added elsewhere a moment ago is valid', async () => {
    const { customer, reading, toStartWriting, elsewhere } = await prepared(withoutToken);
    const key = await customer();
    for (const identified of [reading, toStartWriting]) {
      expect((await identified(key)).status).toBe('valid');
      const added = { keyId: randomUUID(), digest: digestOf(randomUUID()) };
      await write(elsewhere, key, addKey(key.applicationId, added));
      expect((await identified({ ...key, ...added })).status).toBe('valid');
    }
  });

  it('of many forged keys at once costs a few reads', async () => {
    const { customer, reading, toStartWriting, asOfNow, readsSince } = await prepared(withoutToken);
    const key = await customer();
    for (const identified of [reading, toStartWriting, asOfNow]) {
      readsSince();
      const forged = Array.from({ length: 200 }, () => identified(other(key)));
      const statuses = (await Promise.all(forged)).map(({ status }) => status);
      expect(new Set(statuses)).toEqual(new Set(['unknown']));
      expect(readsSince()).toBeLessThanOrEqual(10);
    }
  });

  it('is not needed to start a write with a key that was ever valid', async () => {
    const { customer, toStartWriting, elsewhere, readsSince, asOfNow } = await prepared(withoutToken);
    const key = await customer();
    await toStartWriting(key);
    await write(elsewhere, key, revokeKey(key.keyId));
    readsSince();
    expect((await toStartWriting(key)).status).toBe('valid');
    expect(readsSince()).toBe(0);
    expect((await asOfNow(key)).status).toBe('revoked');
  });
});

describe('a tenant whose stream cannot be read', () => {
  it('is unreadable for reads and writes, and affects no other tenant', async () => {
    const { customer, reading, asOfNow, elsewhere } = await prepared();
    const [key, neighbour] = [await customer(), await customer()];
    expect((await reading(key)).status).toBe('valid');
    await elsewhere.log.append(streams.tenant(key.tenantId), [anEvent()], 2);
    expect(await refusedWith(asOfNow(key))).toBe('tenant_unreadable');
    expect(await refusedWith(reading(key))).toBe('tenant_unreadable');
    expect((await reading(neighbour)).status).toBe('valid');
  });
});

describe('while the log does not answer', () => {
  const away = async (options: Partial<FoldsOptions> = {}) => {
    const log = mayBeAway();
    const all = await prepared(log.log, options);
    const [key, neighbour, cold] = [await all.customer(), await all.customer(), await all.customer()];
    for (const one of [key, neighbour]) expect((await all.reading(one)).status).toBe('valid');
    return { ...all, key, neighbour, cold, be: log.be };
  };
  const briefly = () => ({ deadline: monotonicMs() + 300 });

  it.each(['silent', 'failing'] as const)('(%s), tenants in memory are read', async (how) => {
    const { reading, toStartWriting, asOfNow, key, neighbour, cold, be } = await away();
    be(how);
    passTime(READ_AGE_MS + 10);
    expect((await reading(key)).status).toBe('valid');
    // Those who come later do not wait for it.
    let hasWaited = false;
    const first = reading(neighbour).finally(() => (hasWaited = how === 'silent'));
    const later = await Promise.all(Array.from({ length: 20 }, () => reading(key)));
    expect(new Set(later.map(({ status }) => status))).toEqual(new Set(['valid']));
    expect(hasWaited).toBe(false);
    expect((await first).status).toBe('valid');
    // But nothing is refused, and no other tenant is read.
    expect(await refusedWith(reading(other(key), briefly()))).toBe('log_unavailable');
    expect(await refusedWith(asOfNow(key, briefly()))).toBe('log_unavailable');
    expect(await refusedWith(reading(cold, briefly()))).toBe('log_unavailable');
    expect((await toStartWriting(key)).status).toBe('valid');
    expect(await refusedWith(toStartWriting(cold, briefly()))).toBe('log_unavailable');
    be('there');
    expect((await reading(cold)).status).toBe('valid');
  });

  it.each(['silent', 'failing'] as const)('(%s) for longer than the time, nothing is read', async (how) => {
    const { reading, key, be, elsewhere } = await away({ withoutLogMs: READ_AGE_MS + 300 });
    be(how);
    await write(elsewhere, key, revokeKey(key.keyId));
    passTime(READ_AGE_MS + 10);
    expect((await reading(key, briefly())).status).toBe('valid');
    passTime(350);
    expect(await refusedWith(reading(key, briefly()))).toBe('log_unavailable');
    be('there');
    expect((await reading(key)).status).toBe('revoked');
  });

  it('a look that takes less than a second is waited for, however old the fold is', async () => {
    const { reading, key, be, elsewhere } = await away();
    await write(elsewhere, key, revokeKey(key.keyId));
    passTime(READ_AGE_MS + 10);
    be('silent');
    const waiting = reading(key);
    setTimeout(() => be('there'), 700);
    expect((await waiting).status).toBe('revoked');
  });
});
