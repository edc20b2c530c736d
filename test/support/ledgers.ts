import { randomUUID } from 'node:crypto';
import { monotonicMs } from '../../src/async/clock';
import { createApplication } from '../../src/domain/applications';
import type { Idempotency } from '../../src/domain/events';
import { createTenant, updateTenant, type Decide } from '../../src/domain/tenant';
import type { EventLog, NewEvent } from '../../src/event-log/event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { digestOf, makeKey } from '../../src/ledger/api-key';
import type { Fold } from '../../src/ledger/fold';
import { cachedFolds, type Folds, type FoldsOptions } from '../../src/ledger/folds';
import { ledger, type Command, type Ledger } from '../../src/ledger/ledger';
import { TIMES } from '../../src/times';
import { closeAfterwards } from './closing';
import { anEvent, eventsOf } from './events';
import { OWNER } from './given';

export const streams = streamNames();

export interface OpenLedger {
  readonly log: EventLog;
  readonly folds: Folds;
  readonly ledger: Ledger;
  streamReads(): number;
  eventsRead(): number;
  close(): Promise<void>;
}

const counting = (log: EventLog) => {
  let [reads, events] = [0, 0];
  const readStream: EventLog['readStream'] = async function* (stream, after) {
    reads += 1;
    for await (const batch of log.readStream(stream, after)) {
      events += batch.length;
      yield batch;
    }
  };
  return { log: { ...log, readStream }, streamReads: () => reads, eventsRead: () => events };
};

/** Closed after the test. `around` may wrap the log of the ledger, to interfere at a chosen moment. */
export const openLedger = async (
  folder: string,
  around: (log: EventLog) => EventLog = (log) => log,
  options: Partial<FoldsOptions> = {},
): Promise<OpenLedger> => {
  const { log, ...counted } = counting(around(await sqliteEventLog(folder, streams)));
  const folds = cachedFolds({ log, streams }, { withoutLogMs: TIMES.readsWithoutLogMs, ...options });
  closeAfterwards(log.close);
  return { log, folds, ledger: ledger({ log, folds, streams }), ...counted, close: log.close };
};

/** Long enough for a busy machine; tests about deadlines set their own. */
const TIMEOUT_MS = 20_000;

export const byOperator = (tenantId: string, decide: Decide): Command => ({
  tenantId,
  caller: { kind: 'operator', actor: { type: 'user', id: OWNER } },
  decide,
  at: new Date().toISOString(),
  deadline: monotonicMs() + TIMEOUT_MS,
});

export interface Customer {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyId: string;
  readonly digest: string;
}

interface CustomerOptions {
  readonly permissions?: readonly string[];
  readonly expiresAt?: string;
  /** The same ids again, in another log. */
  readonly as?: Customer;
}

const freshCustomer = (): Customer => {
  const tenantId = randomUUID();
  return { tenantId, applicationId: randomUUID(), keyId: randomUUID(), digest: digestOf(makeKey(tenantId)) };
};

export const makeCustomer = async (
  { ledger: program }: OpenLedger,
  { permissions = ['tenant:update', 'tenant:delete'], expiresAt, as }: CustomerOptions = {},
): Promise<Customer> => {
  const customer = as ?? freshCustomer();
  const { tenantId, applicationId, keyId, digest } = customer;
  const at = '2020-01-01T00:00:00.000Z';
  const key = { keyId, digest, ...(expiresAt === undefined ? {} : { expiresAt }) };
  const input = { name: 'Acme', ownerId: OWNER, includedMonthlyActiveTokens: 0 };
  await program.execute(byOperator(tenantId, createTenant(input)));
  const application = { applicationId, name: 'Desk', type: 'management' as const, permissions, key };
  await program.execute({ ...byOperator(tenantId, createApplication(application)), at });
  return customer;
};

export const appendMany = async (log: EventLog, stream: string, events: readonly NewEvent[]) => {
  let revision = (await eventsOf(log.readStream(stream))).length - 1;
  for (let from = 0; from < events.length; from += 1_000)
    ({ revision } = await log.append(stream, events.slice(from, from + 1_000), revision, TIMEOUT_MS));
};

type Owner = Pick<Customer, 'tenantId' | 'applicationId'>;

/** Extends a customer's history: request number n used the key `key-n`. */
export const fillStream = (
  log: EventLog,
  { tenantId, applicationId }: Owner,
  count: number,
  names = streams,
) => {
  const events = Array.from({ length: count }, (_, n) => {
    const settings = { fingerprintTokens: false, deduplicateTokens: n % 2 === 0 };
    const actor = { type: 'application', id: applicationId };
    const metadata = { actor, at: new Date().toISOString(), version: 1, ...idempotent(`key-${n}`) };
    return anEvent({ name: `Filled ${n}`, settings }, { type: 'TenantUpdated', metadata });
  });
  return appendMany(log, names.tenant(tenantId), events);
};

export const addKeys = (
  log: EventLog,
  { tenantId, applicationId }: Owner,
  count: number,
  names = streams,
) => {
  const events = Array.from({ length: count }, () => {
    const data = { keyId: randomUUID(), applicationId, digest: digestOf(randomUUID()) };
    return anEvent(data, { type: 'KeyAdded', metadata: { version: 1 } });
  });
  return appendMany(log, names.tenant(tenantId), events);
};

export const byKey = (
  { tenantId, applicationId, digest }: Customer,
  decide: Decide,
  more: Partial<Command> = {},
): Command => {
  const at = more.at ?? new Date().toISOString();
  return {
    tenantId,
    caller: { kind: 'key', digest, applicationId },
    permission: 'tenant:update',
    decide,
    at,
    deadline: monotonicMs() + TIMEOUT_MS,
    ...more,
  };
};

export const rename = (customer: Customer, name: string, more: Partial<Command> = {}): Command =>
  byKey(customer, updateTenant({ name, settings: {} }), more);

export const idempotent = (
  key: string,
  hash = 'body',
  scope = 'PUT /tenants/self',
): { idempotency: Idempotency } => ({ idempotency: { key, hash, scope } });

/** If-Match: the tenant must be at this revision. */
export const ifAt = (revision: number): Pick<Command, 'resource' | 'isMet'> => ({
  resource: { of: 'Tenant', tag: (tenant) => String(tenant.revision) },
  isMet: (now) => now === String(revision),
});

export const textOf = ({ revision, tenant }: Fold): string =>
  JSON.stringify({ revision, tenant }, (_, value: unknown) => (value instanceof Map ? [...value] : value));

export const soon = (): number => monotonicMs() + 20_000;
