import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openApp, type App } from '../../src/app/app';
import { workerThread } from '../../src/app/worker-thread';
import { readConfiguration } from '../../src/configuration';
import { createTenant, updateTenant } from '../../src/domain/tenant';
import { byOperator } from '../support/ledgers';
import { freshFolder } from '../support/folders';
import { EMBEDDED } from '../support/profile';
import { liveSetFile } from '../support/set-files';
import { until } from '../support/waiting';
import { walCommits } from '../support/wal-commits';

const GROUP = 32;
const NAMED = { ownerId: randomUUID(), includedMonthlyActiveTokens: 0 };
const settings = { fingerprintTokens: false, deduplicateTokens: false };

describe('the thread of a server that appends and projects', () => {
  const folder = freshFolder();
  const tenants = Array.from({ length: GROUP }, () => randomUUID());
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
    for (const tenantId of tenants)
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
    // Without a look: the answer to the append said so.
    return app.live.reached(position, 0);
  };

  it.each([1, GROUP])(
    'commits once to the log and once to the set for %i writes of one turn',
    async (writes) => {
      const work = async (name: string) =>
        Promise.all(tenants.slice(0, writes).map((id) => rename(id, name)));
      await work('warm');
      const before = files().map(walCommits);
      const shown = await work(`of ${writes}`);
      const after = files().map(walCommits);
      expect(after.map((commits, i) => commits - (before[i] ?? 0))).toEqual([1, 1]);
      expect(shown).toEqual(Array.from({ length: writes }, () => true));
    },
  );
});
