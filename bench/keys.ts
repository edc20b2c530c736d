import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventLog, NewEvent } from '../src/event-log/event-log';
import { sqliteEventLog } from '../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../src/event-log/streams';
import { digestOf, makeKey } from '../src/ledger/api-key';
import { startServer, type Server } from './processes';

/**
 * What do large tenants cost themselves and others? 22 tenants (or TENANTS) with 10,000 idempotency keys each: writes to
 * them, reads of another tenant, and forged keys that name them, also while another tenant writes. A tenant with 12,000
 * keys: its first write, and reads of another tenant meanwhile.
 * `npm run bench -- keys [TENANTS] [MAIN] [FOLDER]`, where MAIN is the main file of another build, and FOLDER keeps the data
 * of the large tenants for the next run.
 */
const TENANTS = Number(process.argv[2] ?? 22);
const MAIN = process.argv[3];
const FOLDER = process.argv[4];
const REQUESTS = 10_000;
const KEYS = 12_000;
const ROUNDS = 12;
const WRITERS = 8;

interface Customer {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly key: string;
}

const streams = streamNames();
const event = (type: string, data: NewEvent['data'], more: NewEvent['metadata'] = {}): NewEvent => ({
  id: randomUUID(),
  type,
  data,
  metadata: { version: 1, ...more },
});

const keyAdded = (applicationId: string, key: string): NewEvent =>
  event('KeyAdded', { keyId: randomUUID(), applicationId, digest: digestOf(key) });

const appendAll = async (log: EventLog, tenantId: string, events: readonly NewEvent[]): Promise<void> => {
  let revision: 'no_stream' | number = 'no_stream';
  for (let from = 0; from < events.length; from += 1_000) {
    const batch = events.slice(from, from + 1_000);
    ({ revision } = await log.append(streams.tenant(tenantId), batch, revision, 20_000));
  }
};

const makeCustomer = async (
  log: EventLog,
  more: (customer: Customer) => readonly NewEvent[],
): Promise<Customer> => {
  const tenantId = randomUUID();
  const customer = { tenantId, applicationId: randomUUID(), key: makeKey(tenantId) };
  const { applicationId, key } = customer;
  const settings = { fingerprintTokens: false, deduplicateTokens: false };
  const permissions = ['tenant:read', 'tenant:update'];
  const application = { applicationId, name: 'Bench', applicationType: 'management', permissions };
  await appendAll(log, tenantId, [
    event('TenantCreated', {
      name: 'Bench',
      ownerId: randomUUID(),
      settings,
      includedMonthlyActiveTokens: 0,
    }),
    event('ApplicationCreated', application),
    keyAdded(applicationId, key),
    ...more(customer),
  ]);
  return customer;
};

const requests = ({ applicationId }: Customer): readonly NewEvent[] =>
  Array.from({ length: REQUESTS }, (_, n) =>
    event(
      'TenantUpdated',
      { name: `Name ${n}`, settings: { fingerprintTokens: false, deduplicateTokens: false } },
      {
        actor: { type: 'application', id: applicationId },
        idempotency: { key: randomUUID(), scope: 'PUT /tenants/self', hash: digestOf(String(n)) },
      },
    ),
  );

const manyKeys = ({ applicationId }: Customer): readonly NewEvent[] =>
  Array.from({ length: KEYS }, () => keyAdded(applicationId, randomUUID()));

type TimedRequest = (key: string, put?: boolean) => Promise<number>;

/** Returns the milliseconds of a request, which must be answered with this status. */
const timedRequests =
  ({ url }: Server, expected: number): TimedRequest =>
  async (key, put = false) => {
    const began = performance.now();
    const response = await fetch(`${url}/tenants/self`, {
      method: put ? 'PUT' : 'GET',
      headers: {
        'SVC-API-KEY': key,
        ...(put ? { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() } : {}),
      },
      ...(put ? { body: '{"name":"B"}' } : {}),
    });
    await response.text();
    if (response.status !== expected) throw new Error(`${response.status} instead of ${expected}`);
    return performance.now() - began;
  };

const percentiles = (times: readonly number[]): string => {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN).toFixed(1);
  return `median ${at(0.5)} ms, p99 ${at(0.99)}, longest ${at(1)}`;
};

/** Repeats a request while the work runs, from this many clients. Returns the times. */
const meanwhile = async (
  request: () => Promise<number>,
  work: () => Promise<unknown>,
  clients = 1,
): Promise<readonly number[]> => {
  const times: number[] = [];
  let isRunning = true;
  const requesting = Array.from({ length: clients }, async () => {
    while (isRunning) times.push(await request());
  });
  await work();
  isRunning = false;
  await Promise.all(requesting);
  return times;
};

const withServer = async (folder: string, work: (server: Server) => Promise<void>): Promise<void> => {
  const env = { DATA_DIR: folder, RATE_LIMITS: 'off', LOG_LEVEL: 'info', DEMO: 'false' };
  const server = await startServer(env, MAIN);
  try {
    await work(server);
  } finally {
    await server.stop();
  }
};

const inRounds = async (
  customers: readonly Customer[],
  work: (customer: Customer) => Promise<number>,
  rounds = ROUNDS,
) => {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1)
    for (const customer of customers) times.push(await work(customer));
  return times;
};

interface Customers {
  readonly bystander: Customer;
  readonly customers: readonly Customer[];
}

/** Made once per folder. */
const largeTenants = async (folder: string): Promise<Customers> => {
  const known = join(folder, 'customers.json');
  if (existsSync(known)) return JSON.parse(readFileSync(known, 'utf8')) as Customers;
  const log = await sqliteEventLog(folder, streams);
  const bystander = await makeCustomer(log, () => []);
  const customers: Customer[] = [];
  for (let n = 0; n < TENANTS; n += 1) customers.push(await makeCustomer(log, requests));
  await log.close();
  writeFileSync(known, JSON.stringify({ bystander, customers }));
  return { bystander, customers };
};

/** Forged keys that name the tenants, while the other tenant is read or written. */
const measureForgedKeys = async (
  server: Server,
  { bystander, customers }: Customers,
  what: string,
  rounds?: number,
): Promise<void> => {
  const [good, refused] = [timedRequests(server, 200), timedRequests(server, 401)];
  for (const otherWrites of [true, false])
    for (const put of [true, false]) {
      let forged: readonly number[] = [];
      const others = await meanwhile(
        () => good(bystander.key, otherWrites),
        async () => {
          forged = await inRounds(customers, ({ tenantId }) => refused(makeKey(tenantId), put), rounds);
        },
        otherWrites ? WRITERS : 1,
      );
      console.log(`forged keys that name ${what}, ${put ? 'PUT' : 'GET'}: ${percentiles(forged)}`);
      console.log(
        `  ${otherWrites ? 'writes to' : 'reads of'} another tenant meanwhile: ${percentiles(others)}`,
      );
    }
};

const measureLargeTenants = async (server: Server, all: Customers): Promise<void> => {
  const { bystander, customers } = all;
  const good = timedRequests(server, 200);
  await measureForgedKeys(server, all, 'tenants not in memory', 1);
  for (const { key } of customers) await good(key, true);
  let writes: readonly number[] = [];
  const reads = await meanwhile(
    () => good(bystander.key),
    async () => {
      writes = await inRounds(customers, ({ key }) => good(key, true));
    },
  );
  console.log(`writes to ${TENANTS} tenants of ${REQUESTS} remembered requests: ${percentiles(writes)}`);
  console.log(`  reads of another tenant meanwhile: ${percentiles(reads)}`);
  await measureForgedKeys(server, all, 'tenants in memory');
};

const firstWrite = async (server: Server, neighbour: Customer, large: Customer) => {
  const good = timedRequests(server, 200);
  await good(neighbour.key);
  const began = performance.now();
  let tries = 0;
  const reads = await meanwhile(
    () => good(neighbour.key),
    async () => {
      for (;;)
        try {
          tries += 1;
          return await good(large.key, true);
        } catch {
          if (performance.now() - began > 60_000) throw new Error('It never came.');
        }
    },
  );
  const first = (performance.now() - began).toFixed(0);
  console.log(`${KEYS} keys: the first write after ${first} ms and ${tries} tries`);
  console.log(`  reads of another tenant meanwhile: ${percentiles(reads)}`);
};

const main = async (): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const [many, keys] = [FOLDER ?? join(root, 'many'), join(root, 'keys')];
  try {
    const customers = await largeTenants(many);
    await withServer(many, (server) => measureLargeTenants(server, customers));

    const log = await sqliteEventLog(keys, streams);
    const neighbour = await makeCustomer(log, () => []);
    const large = await makeCustomer(log, manyKeys);
    await log.close();
    await withServer(keys, (server) => firstWrite(server, neighbour, large));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
};

void main();
