import { randomUUID } from 'node:crypto';
import { keyRecords } from '../../src/access/key-records';
import type { App } from '../../src/app/app';
import { monotonicMs, pause } from '../../src/async/clock';
import { addKey, revokeKey } from '../../src/domain/application-keys';
import { createApplication, deleteApplication, updateApplication } from '../../src/domain/applications';
import { isRefusal } from '../../src/domain/refusal';
import { createTenant, deleteTenant, updateTenant, type Decide } from '../../src/domain/tenant';
import type { EventLog } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { digestOf } from '../../src/ledger/api-key';
import { cachedFolds } from '../../src/ledger/folds';
import type { Identity } from '../../src/ledger/identify';
import type { PresentedKey } from '../../src/ledger/request';
import { ledger, type Ledger } from '../../src/ledger/ledger';
import { sqliteSnapshots } from '../../src/ledger/sqlite-snapshots';
import type { Reader } from '../../src/read-models/read-models';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { OWNER } from '../support/given';
import { byOperator, soon } from '../support/ledgers';
import { openAppIn } from '../support/profile';
import { refusedWith, deferred, until } from '../support/waiting';

const opened: { close(): Promise<void> }[] = [];
const closing = <T extends { close(): Promise<void> }>(resource: T): T => {
  opened.unshift(resource);
  return resource;
};
afterEach(async () => {
  for (const resource of opened.splice(0)) await resource.close();
});

const folder = freshFolder();
let processes: readonly [App, App];
beforeAll(async () => {
  processes = [await openAppIn(folder), await openAppIn(folder)];
  // Creates the read models.
  for (const { projecting } of processes) await projecting.catchUp('', 0);
});
afterAll(async () => {
  for (const app of processes) await app.close();
});

type Identified = { readonly status: 'valid' } & Identity;

/** Why a key is refused, or whose it is. */
const outcomeOf = (identified: Promise<Identity>): Promise<Identified | { readonly status: string }> =>
  identified.then(
    (identity) => ({ status: 'valid', ...identity }),
    (error: unknown) => {
      if (!isRefusal(error)) throw error;
      return { status: String(error.more['reason']) };
    },
  );

interface KnownKey {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyId: string;
  readonly digest: string;
}

const PERMISSIONS = ['tenant:read', 'tenant:update'];
const newKey = () => ({ keyId: randomUUID(), digest: digestOf(randomUUID()) });

const checked = ({ tenantId, digest }: Pick<KnownKey, 'tenantId' | 'digest'>): PresentedKey => ({
  tenantId,
  digest,
  at: new Date().toISOString(),
  deadline: soon(),
});

/**
 * Two processes on one log. Nothing is projected unless `project` is called, so the read models are exactly that far.
 */
const harnessFor = async (options: { around?: (log: EventLog) => EventLog; withoutLogMs?: number } = {}) => {
  const [here, elsewhere] = processes;
  let reads = { heads: 0, streams: 0 };
  let live: Reader | undefined;
  const outer = options.around?.(here.log) ?? here.log;
  const log: Pick<EventLog, 'head' | 'readStream'> = {
    head: () => {
      reads.heads += 1;
      return outer.head();
    },
    readStream: (...args) => {
      reads.streams += 1;
      return outer.readStream(...args);
    },
  };
  const keys = closing(
    keyRecords({
      log,
      streams: here.streams,
      applications: () => live ?? here.projecting.reader('applications'),
      withoutLogMs: options.withoutLogMs ?? 60_000,
    }),
  );
  const snapshots = closing(sqliteSnapshots(folder, await here.log.identity(), () => undefined));
  const folds = cachedFolds({ ...here.log, ...log }, snapshots, here.streams);
  const own = ledger({ log: here.log, folds, streams: here.streams, keys });
  const check = {
    forReading: (key: PresentedKey) => outcomeOf(own.identify(key, 400)),
    forWriting: (key: PresentedKey) => outcomeOf(own.identify({ ...key, isWrite: true }, 0)),
    toStartWriting: (key: PresentedKey) => outcomeOf(own.identify({ ...key, isWrite: true }, Infinity)),
  };
  const project = async (): Promise<void> => {
    const head = await elsewhere.log.head();
    if (head !== undefined) await elsewhere.projecting.catchUp(head.position, 10_000);
  };
  const write = (by: { readonly ledger: Ledger }, tenantId: string, decide: Decide) =>
    by.ledger.execute(byOperator(tenantId, decide));
  const customer = async (): Promise<KnownKey> => {
    const [tenantId, applicationId, key] = [randomUUID(), randomUUID(), newKey()];
    await write(
      elsewhere,
      tenantId,
      createTenant({ name: 'A', ownerId: OWNER, includedMonthlyActiveTokens: 0 }),
    );
    const application = {
      applicationId,
      name: 'B',
      type: 'management' as const,
      permissions: PERMISSIONS,
      key,
    };
    await write(elsewhere, tenantId, createApplication(application));
    return { tenantId, applicationId, ...key };
  };
  return {
    here: { ...here, ledger: own },
    isFolded: (tenantId: string) => folds.peek(tenantId) !== undefined,
    elsewhere,
    check,
    project,
    customer,
    write,
    reading: (key: KnownKey) => check.forReading(checked(key)),
    switchTo: (generation: Reader) => (live = generation),
    readsSince: () => {
      const since = reads;
      reads = { heads: 0, streams: 0 };
      return since;
    },
  };
};

const other = (key: KnownKey): KnownKey => ({ ...key, digest: digestOf(randomUUID()) });
const permissionsOf = (found: Awaited<ReturnType<typeof outcomeOf>>) =>
  'application' in found ? found.application.permissions : found.status;

describe('a key in the read model', () => {
  it('is valid, and for 400 ms neither the log nor a stream is read again', async () => {
    const { customer, project, reading, readsSince } = await harnessFor();
    const key = await customer();
    await project();
    expect(await reading(key)).toMatchObject({ status: 'valid', keyId: key.keyId });
    readsSince();
    for (let i = 0; i < 100; i += 1) expect((await reading(key)).status).toBe('valid');
    expect(readsSince()).toEqual({ heads: expect.any(Number), streams: 0 });
  });

  it('is read once per proof if the store cannot tell whether it has changed', async () => {
    const { customer, project, reading, here, switchTo, write, elsewhere } = await harnessFor();
    const { changeToken: _, ...plain } = here.projecting.reader('applications');
    let asked = 0;
    const get: Reader['get'] = (...key) => {
      asked += 1;
      return plain.get(...key);
    };
    switchTo({ ...plain, get });
    const key = await customer();
    await project();
    await reading(key);
    const before = asked;
    expect(before).toBeGreaterThan(0);
    for (let i = 0; i < 20; i += 1) expect((await reading(key)).status).toBe('valid');
    expect(asked - before).toBeLessThanOrEqual(before);
    await write(elsewhere, key.tenantId, revokeKey(key.keyId));
    await project();
    await until(async () => (await reading(key)).status === 'revoked', 1_000);
    expect((await reading(other(key))).status).toBe('unknown');
  });

  const endings: readonly [string, string, (key: KnownKey) => Decide][] = [
    ['is revoked', 'revoked', ({ keyId }) => revokeKey(keyId)],
    ['loses its Application', 'application_deleted', ({ applicationId }) => deleteApplication(applicationId)],
    ['loses its tenant', 'tenant_deleted', () => deleteTenant()],
  ];

  it.each(endings)(
    'that %s through another process is refused within a second, even if the read model never moves',
    async (_, status, what) => {
      const { customer, project, reading, write, elsewhere, check } = await harnessFor();
      const [key, neighbour] = [await customer(), await customer()];
      await project();
      expect((await reading(key)).status).toBe('valid');
      await write(elsewhere, key.tenantId, what(key));
      await until(async () => (await reading(key)).status !== 'valid', 1_000);
      expect((await reading(key)).status).toBe(status);
      expect((await check.forWriting(checked(key))).status).toBe(status);
      expect((await reading(neighbour)).status).toBe('valid');
    },
  );

  it.each(endings)('that %s through this process is refused at once', async (_, status, what) => {
    const { customer, project, reading, write, here } = await harnessFor();
    const key = await customer();
    await project();
    expect((await reading(key)).status).toBe('valid');
    await write(here, key.tenantId, what(key));
    expect((await reading(key)).status).toBe(status);
  });

  it('whose revocation was seen in its stream is refused at once, even if an older proof is still valid', async () => {
    const { customer, project, reading, write, elsewhere, check } = await harnessFor();
    const key = await customer();
    await project();
    expect((await reading(key)).status).toBe('valid');
    await write(elsewhere, key.tenantId, revokeKey(key.keyId));
    expect((await check.forWriting(checked(key))).status).toBe('revoked');
    expect((await reading(key)).status).toBe('revoked');
    await project();
    expect((await reading(key)).status).toBe('revoked');
  });

  it('is not proven by a head of the log that took longer to arrive than a proof counts', async () => {
    let held: ReturnType<typeof deferred<void>> | undefined;
    const around = (log: EventLog): EventLog => ({
      ...log,
      head: async () => {
        const head = await log.head();
        await held?.promise;
        return head;
      },
    });
    const { customer, project, reading, write, elsewhere } = await harnessFor({ around });
    const key = await customer();
    await project();
    held = deferred();
    const asked = monotonicMs();
    const early = reading(key);
    await write(elsewhere, key.tenantId, revokeKey(key.keyId));
    await early;
    await until(() => monotonicMs() - asked > 450);
    held.resolve();
    held = undefined;
    await pause(0);
    expect(await reading(key)).toEqual({ status: 'revoked' });
  });

  it('has the current permissions of its Application, even if the read model never moves', async () => {
    const { customer, project, reading, write, elsewhere, check } = await harnessFor();
    const key = await customer();
    await project();
    expect(permissionsOf(await reading(key))).toEqual(PERMISSIONS);
    await write(elsewhere, key.tenantId, updateApplication(key.applicationId, { permissions: ['log:read'] }));
    await until(async () => (permissionsOf(await reading(key)) as string[])[0] === 'log:read', 1_000);
    expect(permissionsOf(await check.forWriting(checked(key)))).toEqual(['log:read']);
  });

  it('has permissions that this process changed at once', async () => {
    const { customer, project, reading, write, here } = await harnessFor();
    const key = await customer();
    await project();
    expect(permissionsOf(await reading(key))).toEqual(PERMISSIONS);
    await write(here, key.tenantId, updateApplication(key.applicationId, { permissions: ['log:read'] }));
    expect(permissionsOf(await reading(key))).toEqual(['log:read']);
  });

  it('is checked again when another generation answers, which the proof did not cover', async () => {
    const { customer, project, reading, write, elsewhere, here, switchTo } = await harnessFor();
    const key = await customer();
    await project();
    expect((await reading(key)).status).toBe('valid');
    const before = here.projecting.reader('applications');
    const frozen: Reader = { ...before, applied: async () => '' };
    await write(elsewhere, key.tenantId, revokeKey(key.keyId));
    switchTo(frozen);
    expect((await reading(key)).status).toBe('revoked');
  });

  it('is refused from the moment it expires, however long it is cached', async () => {
    const { customer, project, check, write, elsewhere } = await harnessFor();
    const key = await customer();
    const expiring = { ...newKey(), expiresAt: '2130-01-01T00:00:00.000Z' };
    await write(elsewhere, key.tenantId, addKey(key.applicationId, expiring));
    await project();
    const at = (moment: string) => check.forReading({ ...checked({ ...key, ...expiring }), at: moment });
    expect((await at('2129-12-31T23:59:59.999Z')).status).toBe('valid');
    expect((await at('2130-01-01T00:00:00.000Z')).status).toBe('expired');
  });
});

describe('a key that is not in the read model yet', () => {
  it('is valid at once, for reads and for writes', async () => {
    const { customer, reading, check, write, elsewhere, project } = await harnessFor();
    const key = await customer();
    expect((await reading(key)).status).toBe('valid');
    await project();
    const second = newKey();
    await write(elsewhere, key.tenantId, addKey(key.applicationId, second));
    expect((await check.forWriting(checked({ ...key, ...second }))).status).toBe('valid');
    expect((await reading({ ...key, ...second })).status).toBe('valid');
  });

  it('is refused at once when it is revoked', async () => {
    const { customer, reading, write, elsewhere } = await harnessFor();
    const key = await customer();
    await write(elsewhere, key.tenantId, revokeKey(key.keyId));
    expect((await reading(key)).status).toBe('revoked');
  });
});

describe('a forged key', () => {
  it('costs no fold, and many at once share their reads', async () => {
    const { customer, project, check, isFolded, readsSince } = await harnessFor();
    const key = await customer();
    await project();
    await check.forReading(checked(key));
    readsSince();
    const forged = Array.from({ length: 200 }, () => other(key));
    for (const asking of [check.forReading, check.toStartWriting, check.forWriting]) {
      const statuses = await Promise.all(forged.map((forgedKey) => asking(checked(forgedKey))));
      expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set(['unknown']));
      const { heads, streams } = readsSince();
      expect(heads).toBeLessThanOrEqual(20);
      expect(streams).toBe(0);
    }
    expect(isFolded(key.tenantId)).toBe(false);
  });

  it('costs no fold either while the read model lags behind with the events of others', async () => {
    const { customer, project, check, isFolded, readsSince } = await harnessFor();
    const key = await customer();
    await project();
    await customer();
    readsSince();
    const forged = Array.from({ length: 100 }, () => other(key));
    for (const asking of [check.forReading, check.toStartWriting, check.forWriting]) {
      const statuses = await Promise.all(forged.map((forgedKey) => asking(checked(forgedKey))));
      expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set(['unknown']));
      expect(readsSince().streams).toBeLessThanOrEqual(10);
    }
    expect(isFolded(key.tenantId)).toBe(false);
    for (let i = 0; i < 20; i += 1) expect((await check.forReading(checked(key))).status).toBe('valid');
    expect(readsSince().streams).toBeLessThanOrEqual(3);
  });

  it('for a tenant whose events are not projected yet folds it once for all', async () => {
    const { customer, check, isFolded, readsSince } = await harnessFor();
    const key = await customer();
    const forged = Array.from({ length: 100 }, () => other(key));
    const statuses = await Promise.all(forged.map((forgedKey) => check.forReading(checked(forgedKey))));
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set(['unknown']));
    expect(readsSince().streams).toBeLessThanOrEqual(10);
    expect(isFolded(key.tenantId)).toBe(true);
  });
});

describe('a tenant whose stream cannot be read', () => {
  it('is unreadable for reads and writes, and affects no other tenant', async () => {
    const { customer, reading, check, elsewhere, project } = await harnessFor();
    const [key, neighbour] = [await customer(), await customer()];
    await project();
    const stream = elsewhere.streams.tenant(key.tenantId);
    await elsewhere.log.append(stream, [anEvent()], 2);
    for (const parked of [false, true]) {
      if (parked) await project();
      expect(await refusedWith(check.forWriting(checked(key)))).toBe('tenant_unreadable');
      await until(async () => (await refusedWith(reading(key))) === 'tenant_unreadable', 1_000);
      expect((await reading(neighbour)).status).toBe('valid');
    }
  });
});

describe('a tenant with many changes that are not projected', () => {
  it('has them read once: later checks read only newer ones', async () => {
    const { customer, reading, write, elsewhere, project, check, readsSince } = await harnessFor();
    const key = await customer();
    await project();
    for (let i = 0; i < 5; i += 1)
      await write(elsewhere, key.tenantId, updateTenant({ name: `N${i}`, settings: {} }));
    expect((await check.forWriting(checked(key))).status).toBe('valid');
    readsSince();
    for (let i = 0; i < 20; i += 1) expect((await reading(key)).status).toBe('valid');
    expect(readsSince().streams).toBeLessThanOrEqual(1);
    await write(elsewhere, key.tenantId, revokeKey(key.keyId));
    expect((await check.forWriting(checked(key))).status).toBe('revoked');
  });
});

describe('while the log does not respond', () => {
  const away = async (withoutLogMs?: number) => {
    const silence = deferred<never>();
    let mode: 'there' | 'silent' | 'failing' = 'there';
    const around = (log: EventLog): EventLog => ({
      ...log,
      head: async () => {
        if (mode === 'failing') throw new Error('no connection');
        return mode === 'silent' ? silence.promise : log.head();
      },
    });
    const all = await harnessFor({ around, ...(withoutLogMs === undefined ? {} : { withoutLogMs }) });
    const key = await all.customer();
    await all.project();
    expect((await all.reading(key)).status).toBe('valid');
    return { ...all, key, be: (now: typeof mode) => (mode = now) };
  };
  const timed = async <T>(work: () => Promise<T>) => {
    const startedAt = monotonicMs();
    return { value: await work(), ms: monotonicMs() - startedAt };
  };
  const proofIsOver = async (harness: Awaited<ReturnType<typeof away>>) => {
    harness.readsSince();
    await until(async () => {
      await harness.reading(harness.key);
      return harness.readsSince().heads > 0;
    });
  };

  it.each(['silent', 'failing'] as const)(
    '(%s), reads continue, and at most one waits for it',
    async (how) => {
      const harness = await away();
      harness.be(how);
      await proofIsOver(harness);
      const unknown = other(harness.key);
      expect((await harness.reading(unknown)).status).toBe('unknown');
      const { value, ms } = await timed(() =>
        Promise.all(Array.from({ length: 20 }, () => harness.reading(harness.key))),
      );
      expect(new Set(value.map(({ status }) => status))).toEqual(new Set(['valid']));
      expect(ms).toBeLessThan(250);
      expect((await harness.check.toStartWriting(checked(harness.key))).status).toBe('valid');
      const withShortDeadline = (key: KnownKey): PresentedKey => ({
        ...checked(key),
        deadline: monotonicMs() + 500,
      });
      expect(await refusedWith(harness.check.forWriting(withShortDeadline(unknown)))).toBe('log_unavailable');
      expect(await refusedWith(harness.check.forWriting(withShortDeadline(harness.key)))).toBe(
        'log_unavailable',
      );
    },
  );

  it('a key is not accepted from a read model that had been behind for a while', async () => {
    const { key, customer, project, write, elsewhere, reading, be } = await away();
    const revoked = await customer();
    await project();
    await write(elsewhere, revoked.tenantId, revokeKey(revoked.keyId));
    for (const end = monotonicMs() + 1_500; monotonicMs() < end; await pause(50)) await reading(key);
    be('silent');
    expect(await refusedWith(reading(revoked))).toBe('log_unavailable');
  });

  it('briefly, a request that needs it waits until its deadline', async () => {
    const answer = deferred();
    let isSlow = false;
    const around = (log: EventLog): EventLog => ({
      ...log,
      head: async () => {
        if (isSlow) await answer.promise;
        return log.head();
      },
    });
    const { customer, project, check } = await harnessFor({ around });
    const key = await customer();
    await project();
    isSlow = true;
    const waiting = check.forWriting(checked(other(key)));
    await until(async () => (await check.forReading(checked(key))).status === 'valid');
    answer.resolve();
    expect((await waiting).status).toBe('unknown');
  });

  it.each(['silent', 'failing'] as const)(
    '(%s) for longer than configured, reads are refused',
    async (how) => {
      const harness = await away(0);
      harness.be(how);
      await until(async () => (await refusedWith(harness.reading(harness.key))) === 'log_unavailable', 2_000);
    },
  );

  it('a known revocation still counts', async () => {
    const harness = await away();
    const neighbour = await harness.customer();
    await harness.write(harness.elsewhere, harness.key.tenantId, revokeKey(harness.key.keyId));
    expect((await harness.check.forWriting(checked(harness.key))).status).toBe('revoked');
    harness.be('failing');
    await pause(450);
    expect(
      await refusedWith(harness.check.forWriting({ ...checked(neighbour), deadline: monotonicMs() + 200 })),
    ).toBe('log_unavailable');
    expect((await harness.reading(harness.key)).status).toBe('revoked');
  });

  it('keys missing from the read model when the log last responded are not refused', async () => {
    const harness = await away();
    const neighbour = await harness.customer();
    await harness.project();
    expect((await harness.reading(neighbour)).status).toBe('valid');
    const second = newKey();
    await harness.write(harness.elsewhere, harness.key.tenantId, addKey(harness.key.applicationId, second));
    // The log has reported its head since, and the read model has not reached it.
    await harness.check.forWriting(checked(neighbour));
    harness.be('failing');
    await proofIsOver({ ...harness, key: neighbour });
    expect(await refusedWith(harness.reading({ ...harness.key, ...second }))).toBe('log_unavailable');
    expect((await harness.reading(neighbour)).status).toBe('valid');
    await harness.project();
    expect((await harness.reading({ ...harness.key, ...second })).status).toBe('valid');
    expect((await harness.reading(other(harness.key))).status).toBe('unknown');
  });

  it('and after it is back, nothing is missing', async () => {
    const harness = await away(0);
    harness.be('failing');
    await until(async () => (await refusedWith(harness.reading(harness.key))) === 'log_unavailable', 2_000);
    harness.be('there');
    expect((await harness.reading(harness.key)).status).toBe('valid');
  });
});

describe('without read models', () => {
  it('keys are checked by folding the tenant if the generation was removed while this process was suspended', async () => {
    const { customer, project, check, switchTo, here } = await harnessFor();
    const key = await customer();
    await project();
    const applied = async () => {
      throw fault('generation_removed', 'It is gone.');
    };
    switchTo({ ...here.projecting.reader('applications'), applied });
    for (const identified of [check.forReading, check.forWriting])
      expect((await identified(checked(key))).status).toBe('valid');
  });

  it.each(['there are none', 'they have not caught up since the start'])(
    'keys are checked by folding the tenant: %s',
    async (why) => {
      const { customer, check, isFolded, switchTo, here } = await harnessFor();
      const key = await customer();
      const none = async () => {
        throw fault('read_models_unavailable', 'There are none.');
      };
      if (why === 'there are none')
        switchTo({ ...here.projecting.reader('applications'), applied: none, get: none, find: none });
      expect((await check.forWriting(checked(other(key)))).status).toBe('unknown');
      expect(isFolded(key.tenantId)).toBe(true);
      for (const identified of [check.forReading, check.toStartWriting, check.forWriting]) {
        expect((await identified(checked(key))).status).toBe('valid');
        expect((await identified(checked(other(key)))).status).toBe('unknown');
      }
    },
  );
});

describe('a write with a key that this process knows to be valid', () => {
  it('starts without a read, and is checked at the head before it is refused', async () => {
    const { customer, project, check, write, elsewhere, here, readsSince } = await harnessFor();
    const key = await customer();
    await project();
    expect((await check.forReading(checked(key))).status).toBe('valid');
    await write(here, key.tenantId, updateTenant({ name: 'B', settings: {} }));
    readsSince();
    expect((await check.toStartWriting(checked(key))).status).toBe('valid');
    expect(readsSince()).toEqual({ heads: 0, streams: 0 });
    await write(elsewhere, key.tenantId, revokeKey(key.keyId));
    expect((await check.forWriting(checked(key))).status).toBe('revoked');
  });
});
