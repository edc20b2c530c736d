import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { permissionsOf } from '../src/domain/authority';
import type { NewEvent } from '../src/event-log/event-log';
import { sqliteEventLog } from '../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../src/event-log/streams';
import { digestOf, makeKey } from '../src/ledger/api-key';
import { startServer, type Server } from './processes';

/**
 * What do many Applications and keys cost? Compares a tenant with 1,000 Applications of 100 keys each to one with a
 * single Application: a first start and restarts, the first write after each, then writes and reads.
 * `npm run bench -- applications [APPLICATIONS [KEYS]]`.
 */
const APPLICATIONS = Number(process.argv[2] ?? 1_000);
const KEYS = Number(process.argv[3] ?? 100);
const ROUNDS = 60;

interface Customer {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly key: string;
}

const streams = streamNames();
const event = (type: string, data: NewEvent['data']): NewEvent => ({
  id: randomUUID(),
  type,
  data,
  metadata: { version: 1, at: new Date().toISOString() },
});
const keyAdded = (applicationId: string, key: string): NewEvent =>
  event('KeyAdded', { keyId: randomUUID(), applicationId, digest: digestOf(key) });

const applicationCreated = (applicationId: string, isOwner: boolean): NewEvent =>
  event('ApplicationCreated', {
    applicationId,
    name: 'Bench',
    applicationType: isOwner ? 'management' : 'private',
    permissions: isOwner ? permissionsOf('management').map(({ type }) => type) : ['token:read'],
  });

const makeCustomer = async (folder: string, applications: number, keys: number): Promise<Customer> => {
  const tenantId = randomUUID();
  const customer = { tenantId, applicationId: randomUUID(), key: makeKey(tenantId) };
  const settings = { fingerprintTokens: false, deduplicateTokens: false };
  const events = [
    event('TenantCreated', { name: 'B', ownerId: randomUUID(), settings, includedMonthlyActiveTokens: 0 }),
    applicationCreated(customer.applicationId, true),
    keyAdded(customer.applicationId, customer.key),
  ];
  for (let n = 1; n < applications; n += 1) {
    const applicationId = randomUUID();
    events.push(applicationCreated(applicationId, false));
    for (let k = 0; k < keys; k += 1) events.push(keyAdded(applicationId, randomUUID()));
  }
  const log = await sqliteEventLog(folder, streams);
  let revision: 'no_stream' | number = 'no_stream';
  for (let from = 0; from < events.length; from += 1_000) {
    const batch = events.slice(from, from + 1_000);
    ({ revision } = await log.append(streams.tenant(tenantId), batch, revision, 20_000));
  }
  await log.close();
  return customer;
};

const timed = async <T>(work: () => Promise<T>): Promise<{ ms: number; result: T }> => {
  const began = performance.now();
  const result = await work();
  return { ms: performance.now() - began, result };
};

type TimedRequest = (method: string, path: string, body?: object) => Promise<{ ms: number; json: never }>;

const timedRequests =
  ({ url }: Server, { key }: Customer): TimedRequest =>
  async (method, path, body) => {
    const { ms, result } = await timed(async () => {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          'SVC-API-KEY': key,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text;
    });
    return { ms, json: (result === '' ? undefined : JSON.parse(result)) as never };
  };

const percentiles = (times: readonly number[]): string => {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN).toFixed(1);
  return `median ${at(0.5)} ms, p99 ${at(0.99)}, longest ${at(1)}`;
};

/** Goes through the life of an Application, one request after the other. Returns the times by kind of request. */
const lifecycleTimes = async (
  request: TimedRequest,
): Promise<Readonly<Record<string, readonly number[]>>> => {
  const times: Record<string, number[]> = {};
  const measured = async (name: string, ...[method, path, body]: Parameters<TimedRequest>) => {
    const { ms, json } = await request(method, path, body);
    (times[name] ??= []).push(ms);
    return json as { id: string };
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const { id } = await measured('create an Application', 'POST', '/applications', {
      name: 'A',
      type: 'private',
      permissions: ['token:read'],
    });
    const application = `/applications/${id}`;
    const key = await measured('add a key', 'POST', `${application}/keys`, {});
    await measured('update', 'PUT', application, { name: 'B', permissions: [] });
    await measured('revoke a key', 'DELETE', `${application}/keys/${key.id}`);
    await measured('regenerate', 'POST', `${application}/regenerate`, { grace_seconds: 60 });
    await measured('get', 'GET', application);
    await measured('list 20', 'GET', '/applications');
    if (round < 10) await measured('list 100', 'GET', '/applications?size=100');
    await measured('delete', 'DELETE', application);
    await measured('update the Tenant', 'PUT', '/tenants/self', { name: 'T' });
  }
  return times;
};

/** Retries until it succeeds: just after a start, the stream of the tenant may still be loading. */
const firstWrite = async (request: TimedRequest): Promise<string> => {
  const began = performance.now();
  for (let tries = 1; ; tries += 1)
    try {
      await request('PUT', '/tenants/self', { name: 'First' });
      return `${(performance.now() - began).toFixed(0)} ms, ${tries} tries`;
    } catch (error) {
      if (performance.now() - began > 60_000) throw error;
    }
};

const measure = async (server: Server, customers: Readonly<Record<string, Customer>>): Promise<void> => {
  for (const [name, customer] of Object.entries(customers))
    for (const [what, times] of Object.entries(await lifecycleTimes(timedRequests(server, customer))))
      console.log(`  ${name}: ${what}: ${percentiles(times)}`);
};

const main = async (): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const env = { RATE_LIMITS: 'off', DEMO: 'false' };
  try {
    const folder = join(root, 'data');
    const small = await makeCustomer(folder, 1, 0);
    const large = await makeCustomer(folder, APPLICATIONS, KEYS);
    console.log(`${APPLICATIONS} Applications with ${KEYS} keys each`);
    for (const start of ['first start', 'restart', 'second restart']) {
      const { ms, result: server } = await timed(() => startServer({ ...env, DATA_DIR: folder }));
      const request = timedRequests(server, large);
      console.log(`${start}: ready after ${ms.toFixed(0)} ms; first write ${await firstWrite(request)}`);
      if (start === 'restart') await measure(server, { small, large });
      await server.stop();
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
};

void main();
