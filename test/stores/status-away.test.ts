import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import type { Gate } from '../support/gate';
import { mongodbBehindProxy, type DisturbedMongodb } from '../support/mongodb-under-test';
import { describeMongodb } from '../support/mongodb/databases';
import { clustered } from '../support/profile';
import { commandProcess, type Finished } from '../support/service';
import { timed } from '../support/waiting';

/** It answers within 3 s. A program needs the rest to start, but longer on a busy machine. */
const MAX_MS = 2_700;

describeMongodb('tenant-ledger status and doctor', () => {
  let store: StandIn;
  let mongodb: DisturbedMongodb;
  let env: Readonly<Record<string, string>>;
  beforeAll(async () => {
    store = await startStandIn();
    mongodb = await mongodbBehindProxy();
    env = { ...clustered(store.url), MONGODB_URL: mongodb.url, DATA_DIR: freshFolder() };
    expect(await commandProcess(['tenant', 'create', '--name', 'Acme'], env)).toMatchObject({ code: 0 });
  });
  afterAll(() => store.stop());

  const run = async (line: string): Promise<Finished & { readonly ms: number }> => {
    const { value, ms } = await timed(() => commandProcess(line.split(' '), env));
    return { ...value, ms };
  };

  it.each<[string, string, () => Gate, (gate: Gate) => unknown, (gate: Gate) => unknown]>([
    ['event store', 'is down', () => store.gate, (gate) => gate.shut(), (gate) => gate.open()],
    ['event store', 'does not answer', () => store.gate, (gate) => gate.freeze(), (gate) => gate.thaw()],
    ['MongoDB', 'is down', () => mongodb, (gate) => gate.shut(), (gate) => gate.open()],
    ['MongoDB', 'does not answer', () => mongodb, (gate) => gate.freeze(), (gate) => gate.thaw()],
  ])('name the %s that %s, within 3 s', async (name, _, gateOf, away, back) => {
    const gate = gateOf();
    const named = `${name} at 127.0.0.1:${gate.port}`;
    const { ms: startMs } = await run('config');
    await away(gate);
    try {
      const [status, doctor] = await Promise.all([run('status'), run('doctor --json')]);
      expect(status).toMatchObject({ code: 1, stdout: '' });
      expect(status.stderr).toContain(named);
      expect(status.ms - startMs).toBeLessThan(MAX_MS);
      expect(doctor.code).toBe(1);
      expect(JSON.parse(doctor.stdout)).toContainEqual({
        check: 'stores',
        status: 'problem',
        finding: expect.stringContaining(named),
      });
      expect(doctor.ms - startMs).toBeLessThan(MAX_MS);
    } finally {
      await back(gate);
    }
    expect(await run('status')).toMatchObject({ code: 0 });
  });
});
