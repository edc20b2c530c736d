import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { findTenant } from '../../projections/tenants';
import { openApp, type App } from '../../src/app/app';
import { workerThread } from '../../src/app/worker-thread';
import { pause } from '../../src/async/clock';
import { readConfiguration } from '../../src/configuration';
import { createTenant, updateTenant } from '../../src/domain/tenant';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { openForWriting } from '../../src/sqlite/database';
import { TIMES } from '../../src/times';
import { manyFacts } from '../support/facts';
import { freshFolder } from '../support/folders';
import { byOperator } from '../support/ledgers';
import { EMBEDDED } from '../support/profile';
import { liveSetFile } from '../support/set-files';
import { editLog } from '../support/sqlite-logs';
import { until } from '../support/waiting';
import { walCommits } from '../support/wal-commits';

const GROUP = 32;
const NAMED = { ownerId: randomUUID(), includedMonthlyActiveTokens: 0 };
const settings = { fingerprintTokens: false, deduplicateTokens: false };

describe('the thread of a server that appends and projects', () => {
  const folder = freshFolder();
  const tenants = Array.from({ length: GROUP }, () => randomUUID());
  const [one = ''] = tenants;
  let app: App;
  beforeAll(async () => {
    const configuration = readConfiguration({ DATA_DIR: folder, ...EMBEDDED });
    const fails = (error: unknown): void => expect(error).toBeUndefined();
    const worker = workerThread(
      configuration,
      (report) => (report.type === 'building' ? undefined : fails(report)),
      fails,
    );
    app = await openApp(configuration, () => undefined, { worker });
    await worker.project();
    for (const tenantId of tenants)
      await app.ledger.execute(byOperator(tenantId, createTenant({ name: 'A', ...NAMED })));
    await until(isAtHead);
  });
  afterEach(() => jest.restoreAllMocks());
  afterAll(() => app.close());

  const files = () => [join(folder, 'events.db'), liveSetFile(folder)];
  const isAtHead = async (): Promise<boolean> => {
    const live = await app.readModels.live();
    return live?.control.to?.position === (await app.log.head())?.position;
  };
  const rename = async (tenantId: string, name: string): Promise<boolean> => {
    const decide = updateTenant({ name, settings });
    return (await app.ledger.execute(byOperator(tenantId, decide))).isShown === true;
  };

  const commitsBy = async (work: () => Promise<unknown>): Promise<readonly number[]> => {
    const before = files().map(walCommits);
    await work();
    await until(isAtHead);
    return files().map((file, i) => walCommits(file) - (before[i] ?? 0));
  };

  it('commits once to each for a write, which is shown when it is answered', async () => {
    const shown: boolean[] = [];
    const counts = await commitsBy(async () => shown.push(await rename(one, 'alone')));
    expect([counts, shown]).toEqual([[1, 1], [true]]);
  });

  it('commits once to each for 32 writes that are released together', async () => {
    const shown: boolean[] = [];
    const counts = await commitsBy(async () => {
      const lock = openForWriting(join(folder, 'events.db'), 'FULL');
      lock.exec('BEGIN IMMEDIATE');
      const writing = Promise.all(tenants.map((tenantId) => rename(tenantId, 'together')));
      await pause(100);
      lock.exec('ROLLBACK');
      lock.close();
      shown.push(...(await writing));
    });
    expect([counts, shown]).toEqual([[1, 1], tenants.map(() => true)]);
  });

  it('shows a write at once while it follows what another process has appended for another tenant', async () => {
    const [, busy = '', other = ''] = tenants;
    const { streams } = app;
    const facts = manyFacts([busy], 2_000, 1).map(({ id, type, data }) => ({ id, type, data, metadata: {} }));
    const elsewhere = await sqliteEventLog(folder, streams);
    await elsewhere.append(streams.activity(busy), facts, 'no_stream', 20_000);
    await elsewhere.close();
    const shown: boolean[] = [];
    while (!(await isAtHead())) shown.push(await rename(other, 'meanwhile'));
    expect(shown.length).toBeGreaterThan(3);
    expect(new Set(shown)).toEqual(new Set([true]));
    const [progress] = await (await app.live.look()).set.progress([busy]);
    expect(progress?.activity).toBe(1_999);
  });

  it('shows a tenant that another process has appended to, when it is asked', async () => {
    const elsewhere = await openApp(readConfiguration({ DATA_DIR: folder, ...EMBEDDED }), () => undefined);
    const decide = updateTenant({ name: 'elsewhere', settings });
    const { position } = await elsewhere.ledger.execute(byOperator(one, decide));
    await elsewhere.close();
    expect(await app.show(one, position, TIMES.tellMs)).toBe(true);
    expect(await findTenant((await app.live.look()).set, one)).toMatchObject({ name: 'elsewhere' });
  });

  it('does not start on a log that was set back to before what is shown, wherever it was followed to', async () => {
    jest.replaceProperty(TIMES, 'logDoubtMs', 0);
    const configuration = readConfiguration({ DATA_DIR: freshFolder(), ...EMBEDDED });
    const first = await openApp(configuration, () => undefined);
    const tenantId = randomUUID();
    const decide = createTenant({ name: 'A', ...NAMED });
    const { position } = await first.ledger.execute(byOperator(tenantId, decide));
    expect(await first.show(tenantId, position, TIMES.tellMs)).toBe(true);
    const { position: last } = await first.ledger.execute(
      byOperator(tenantId, updateTenant({ name: 'B', settings })),
    );
    expect(await first.show(tenantId, last, TIMES.tellMs)).toBe(true);
    expect((await first.live.look()).control.to?.position).toBe(position);
    await first.close();
    editLog(configuration.DATA_DIR, 'DELETE FROM events WHERE revision = 1');
    await expect(openApp(configuration, () => undefined)).rejects.toMatchObject({ code: 'log_set_back' });
  });
});
