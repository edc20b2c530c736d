import type { Document } from 'mongodb';
import { appendToEnd, type Position } from '../../src/event-log/event-log';
import type { NewTenant } from '../support/beside';
import { anEvent, eventsOf } from '../support/events';
import { rename } from '../support/http';
import { startInstances, type Instances } from '../support/instances';
import { describeMongodb } from '../support/mongodb/databases';
import { deferred, until } from '../support/waiting';

const TOGETHER = 32;

/** In which collection a command writes how many documents. Where the follower is stands in the control state. */
const writesOf = (command: Document): readonly (readonly [string, number])[] => {
  const collection: unknown = command['insert'] ?? command['update'] ?? command['delete'];
  const documents: unknown = command['documents'] ?? command['updates'] ?? command['deletes'];
  if (typeof collection !== 'string' || !Array.isArray(documents)) return [];
  return [[collection.replace(/_[0-9a-f]{16}$/, ''), documents.length]];
};

const isOfTransaction = (command: Document): boolean => command['autocommit'] === false;

describeMongodb('what a write costs in the cluster', () => {
  let instances: Instances;
  let customers: readonly NewTenant[];
  const sent: Document[] = [];
  beforeAll(async () => {
    instances = await startInstances(1, { RATE_LIMITS: 'off' });
    customers = await Promise.all(Array.from({ length: TOGETHER + 1 }, instances.newTenant));
    await Promise.all(customers.map((customer) => put(customer, 'Before')));
    // The first use of each key on a day is recorded, which is a write of its own.
    await until(async () => (await appended('KeyUsed')).length > TOGETHER);
    const { position } = (await instances.app.log.head())!;
    await until(() => instances.app.catchUp(position, 20_000));
  }, 120_000);
  afterAll(() => instances.close());
  beforeEach(() => {
    const when = (command: Document): boolean => {
      if (isOfTransaction(command)) sent.push(command);
      return false;
    };
    instances.proxies[0]!.faults.add({ when, times: Infinity, action: { type: 'slow', ms: 0 } });
  });
  afterEach(() => instances.proxies[0]!.faults.clear());

  const appended = async (type: string, after?: Position) =>
    (await eventsOf(instances.app.log.readAll({ after }))).filter((event) => event.type === type);
  const put = async ({ key }: NewTenant, name: string): Promise<void> => {
    const { status, headers } = await rename(instances.running[0]!, key, name);
    expect([status, headers.get('SVC-READ-PENDING')]).toEqual([200, null]);
  };

  /** Each transaction that was begun and writes a tenant, as the numbers of documents that it writes by collection. */
  const transactions = (): readonly (readonly (readonly [string, number])[])[] => {
    const found: Document[][] = [];
    const open = new Map<string, Document[]>();
    for (const command of sent) {
      const session = JSON.stringify(command['lsid']);
      if (command['startTransaction'] === true) {
        open.set(session, []);
        found.push(open.get(session)!);
      }
      open.get(session)?.push(command);
    }
    return found.map((commands) => commands.flatMap(writesOf)).filter((writes) => writes.length > 1);
  };

  it('is one transaction for 32 that were released while the projecting thread was held, and an append for each', async () => {
    const { app, proxies } = instances;
    const before = await app.log.head();
    const [isHeld, released] = [deferred(), deferred()];
    const first = (): Promise<void> => {
      isHeld.resolve();
      return released.promise;
    };
    proxies[0]!.faults.add({ command: 'commitTransaction', first, action: { type: 'slow', ms: 0 } });
    const [holding, ...others] = customers as readonly [NewTenant, ...NewTenant[]];
    const held = put(holding, 'Held');
    await isHeld.promise;
    sent.length = 0;
    const writes = others.map((customer) => put(customer, 'After'));
    const changes = () => appended('TenantUpdated', before?.position);
    await until(async () => (await changes()).length > TOGETHER);
    released.resolve();
    await Promise.all([held, ...writes]);
    expect(await changes()).toHaveLength(TOGETHER + 1);
    expect(transactions()).toEqual([
      [
        ['progress', TOGETHER + 1],
        ['tenants', TOGETHER],
        ['log_rows', TOGETHER],
      ],
    ]);
  });

  it.each(['TokenRead', 'TokenUsed', 'TokenUpdated'])(
    'is a row, the progress and a gate for the fact %s about a token that is known in its month',
    async (type) => {
      const { app } = instances;
      const { tenantId } = customers[0]!;
      const append = async (...types: readonly string[]): Promise<void> => {
        const facts = types.map((one) =>
          anEvent({ entityId: 't1' }, { type: one, metadata: { version: 1 } }),
        );
        const { position } = await appendToEnd(app.log, app.streams.activity(tenantId), facts, 10_000);
        await app.catchUp(position, 20_000);
      };
      await append('TokenCreated', type);
      sent.length = 0;
      await append(type);
      expect(transactions()).toEqual([
        [
          ['progress', 2],
          ['log_rows', 1],
        ],
      ]);
    },
  );
});
