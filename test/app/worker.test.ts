import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openApp, type App } from '../../src/app/app';
import { workerThread } from '../../src/app/worker-thread';
import { yieldToEventLoop } from '../../src/async/clock';
import { readConfiguration } from '../../src/configuration';
import { createTenant, updateTenant } from '../../src/domain/tenant';
import { TIMES } from '../../src/times';
import { freshFolder } from '../support/folders';
import { byOperator } from '../support/ledgers';
import { EMBEDDED } from '../support/profile';
import { liveSetFile } from '../support/set-files';
import { until } from '../support/waiting';
import { walCommits } from '../support/wal-commits';

const GROUP = 32;
const NAMED = { ownerId: randomUUID(), includedMonthlyActiveTokens: 0 };
const settings = { fingerprintTokens: false, deduplicateTokens: false };

describe('the thread of a server that appends and projects', () => {
  const folder = freshFolder();
  const [blocker = '', ...tenants] = Array.from({ length: GROUP + 1 }, () => randomUUID());
  let app: App;
  beforeAll(async () => {
    const configuration = readConfiguration({ DATA_DIR: folder, ...EMBEDDED });
    const fails = (error: unknown): void => expect(error).toBeUndefined();
    const worker = workerThread(
      configuration,
      (report) => {
        if (report.type === 'shown') app.live.moved(report.shown);
        else if (report.type !== 'building') fails(report);
      },
      fails,
    );
    app = await openApp(configuration, () => undefined, { worker });
    await worker.project();
    for (const tenantId of [blocker, ...tenants])
      await app.ledger.execute(byOperator(tenantId, createTenant({ name: 'A', ...NAMED })));
    await until(() =>
      app.live.read().then(
        () => true,
        () => false,
      ),
    );
  });
  afterAll(() => app.close());

  const files = () => [join(folder, 'events.db'), liveSetFile(folder)];
  const rename = async (tenantId: string, name: string): Promise<boolean> => {
    const decide = updateTenant({ name, settings });
    const { position } = await app.ledger.execute(byOperator(tenantId, decide));
    return app.live.reached(position, TIMES.tellMs);
  };

  const commits = (): readonly number[] => files().map(walCommits);
  const since = (before: readonly number[]) => commits().map((count, i) => count - (before[i] ?? 0));

  it('commits at most once more to each for 32 writes that wait together for another one', async () => {
    const before = commits();
    const first = rename(blocker, 'first');
    await yieldToEventLoop();
    const shown = await Promise.all([first, ...tenants.map((id) => rename(id, 'together'))]);
    expect(shown).toEqual(Array.from({ length: GROUP + 1 }, () => true));
    for (const count of since(before)) expect([1, 2]).toContain(count);
  });
});
