import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { isNotTheApi } from '../support/described';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { ask, rename, type ApiResponse } from '../support/http';
import { describeMongodb } from '../support/mongodb/databases';
import { expectProblem } from '../support/problem';
import { clustered } from '../support/profile';
import {
  command,
  loggedBy,
  outputsOf,
  spawnProgram,
  startCommand,
  startService,
  type Service,
} from '../support/service';
import { until } from '../support/waiting';

const PREFIX = 'ledger.';

const stopping: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stopping.splice(0).toReversed()) await stop();
});

const aStore = async (): Promise<StandIn> => {
  const store = await startStandIn();
  stopping.push(() => store.stop());
  return store;
};

const ready = (service: Service): Promise<ApiResponse> => ask(`${service.operationsUrl}/readyz`);

describeMongodb('an operator of a running service whose event log is in an event store', () => {
  const urlOf = ({ url }: StandIn): string => url.replace('esdb://', 'esdb://admin:topsecret@');
  let store: StandIn;
  let service: Service;
  let env: Readonly<Record<string, string>>;
  beforeAll(async () => {
    store = await startStandIn();
    env = { ...clustered(urlOf(store)), DATA_DIR: freshFolder() };
    service = await startService(env);
  });
  afterAll(async () => {
    await service.stop();
    await store.stop();
  });

  it('sees which store it is, without its password', async () => {
    const shown = `esdb://127.0.0.1:${store.port}`;
    expect(loggedBy(service, '"msg":"ready"')).toMatchObject([{ store: shown }]);
    expect((await ready(service)).json.log).toMatchObject({ store: shown });
    const status = await command(['status'], env);
    expect(status.stdout).toMatch(new RegExp(`^store: +${shown}\n`));
    const config = await command(['config'], env);
    expect(config.stdout).toMatch(new RegExp(`EVENTSTORE_URL +${shown} `));
    for (const text of [service.stderr(), service.stdout(), status.stdout, status.stderr, config.stdout])
      expect(text).not.toContain('topsecret');
  });

  it('gets a response within a second even from a frozen store, with what is known', async () => {
    expect((await ready(service)).status).toBe(200);
    store.gate.freeze();
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: 5 }, () => ready(service)));
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    store.gate.thaw();
    for (const { status, json } of answers) {
      expect(status).toBe(503);
      expect(json).toMatchObject({
        status: 'unavailable',
        reason: expect.stringMatching(/not answer/),
        last_known: { log: { store: expect.any(String) }, read_models: { lag_events: 0 } },
      });
    }
    await until(async () => (await ready(service)).status === 200);
  });

  it('learns at the next write that a stream was removed under the running service', async () => {
    expect((await rename(service, service.key, 'Acme')).status).toBe(200);
    const { stream } = store.log.records.findLast((record) => record.stream.startsWith(`${PREFIX}tenant-`))!;
    store.log.tombstone(stream);
    expectProblem(await rename(service, service.key, 'Gone'), 503, 'tenant_unreadable');
    expect((await ready(service)).json.unreadable).toMatchObject([
      { event_id: null, reason: expect.stringMatching(/permanently deleted/) },
    ]);
  });
});

describeMongodb('an operator whose event log is in an event store', () => {
  it('sees that the server is alive and what it waits for while the store is down', async () => {
    const store = await aStore();
    await store.kill();
    const env = { ...clustered(store.url), DATA_DIR: freshFolder(), PORT: '0', OPS_PORT: '0' };
    const OPS_PORT = String(20_000 + (process.pid % 20_000));
    const { stdout, signal, exited } = startCommand(['serve'], { ...env, OPS_PORT });
    const operations = `http://127.0.0.1:${OPS_PORT}`;
    isNotTheApi(operations);
    const asked = (path: string): Promise<ApiResponse | undefined> =>
      ask(`${operations}${path}`).catch(() => undefined);
    await until(async () => (await asked('/livez'))?.status === 200);
    expect(await asked('/readyz')).toMatchObject({
      status: 503,
      json: {
        status: 'starting',
        waiting_for: expect.stringContaining(`the event log esdb://127.0.0.1:${store.port}`),
      },
    });
    await store.restart();
    await until(async () => (await asked('/readyz'))?.status === 200);
    await until(() => stdout().includes('tenant-ledger serves'));
    signal('SIGTERM');
    expect(await exited).toBe(0);
  });

  it('can stop a server that is still waiting for the store', async () => {
    const store = await aStore();
    await store.kill();
    const env = { ...clustered(store.url), DATA_DIR: freshFolder(), PORT: '0', OPS_PORT: '0' };
    // In the process of the tests it would go on waiting: nothing but the end of the process ends that.
    const child = spawnProgram(['serve'], env);
    const closed = once(child, 'close');
    const { stderr } = outputsOf(child);
    await until(() => stderr().includes('Waiting for the event store'));
    child.kill('SIGTERM');
    expect(await closed).toEqual([0, null]);
  });

  it('is told after two seconds what a command is waiting for', async () => {
    const store = await aStore();
    store.gate.freeze();
    const env = { ...clustered(store.url), DATA_DIR: freshFolder() };
    const { stderr, done } = startCommand(['tenant', 'create', '--name', 'Acme'], env);
    await until(() => stderr().includes(`Waiting for the event store at 127.0.0.1:${store.port}.`));
    store.gate.thaw();
    expect(await done).toBe(0);
  });

  it('who uses the wrong prefix gets an error, and nothing is created', async () => {
    const store = await aStore();
    const folder = freshFolder();
    const env = { ...clustered(store.url), DATA_DIR: folder };
    expect((await command(['tenant', 'create', '--name', 'Acme'], env)).code).toBe(0);
    const [records, files] = [store.log.records.length, readdirSync(folder).toSorted()];
    for (const args of [['status'], ['serve'], ['tenant', 'create', '--name', 'Misplaced']]) {
      const ended = await command(args, { ...env, STREAM_PREFIX: 'other.', PORT: '0', OPS_PORT: '0' });
      expect(ended.code).toBe(1);
      expect(ended.stderr).toMatch(
        /STREAM_PREFIX="other\.".*Check EVENTSTORE_URL, MONGODB_URL and STREAM_PREFIX\..*\[read_models_of_another_log\]/,
      );
    }
    expect(store.log.records).toHaveLength(records);
    expect(readdirSync(folder).toSorted()).toEqual(files);
  });
});
