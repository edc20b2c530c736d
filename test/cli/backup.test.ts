import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/folders';
import { ask, rename } from '../support/http';
import { operatorAt } from '../support/operator';
import { clustered, EMBEDDED } from '../support/profile';
import { startService } from '../support/service';

describe('tenant-ledger backup', () => {
  it('of a running service, restored elsewhere, starts with everything that was acknowledged', async () => {
    const service = await startService(EMBEDDED);
    const backup = join(freshFolder(), 'backup');
    const operator = operatorAt(service.folder, EMBEDDED);
    await rename(service, service.key, 'Before');
    const ageOfBackup = async (): Promise<number> => {
      const text = await (await fetch(`${service.operationsUrl}/metrics`)).text();
      return Number(/^tenant_ledger_backup_age_seconds (\S+)$/m.exec(text)?.[1]);
    };
    const sinceCreated = await ageOfBackup();
    expect(sinceCreated).toBeGreaterThan(0);
    const first = await operator.json<{ events: number }>('backup create', backup);
    const sinceBackup =
      Date.now() - Date.parse(readFileSync(join(service.folder, 'last-backup'), 'utf8').trim());
    expect(await ageOfBackup()).toBeLessThanOrEqual((sinceBackup + 60_000) / 1_000);
    writeFileSync(join(service.folder, 'last-backup'), '2020-01-01T00:00:00.000Z\n');
    expect(await ageOfBackup()).toBeGreaterThan(86_400 * 365);
    await rename(service, service.key, 'Between');
    expect(await operator.json('backup create', backup)).toMatchObject({ events: first.events + 1 });
    await rename(service, service.key, 'After');
    expect(await operator.json('backup verify', backup)).toMatchObject({ events: first.events + 1 });
    expect(await operator.json('log verify', backup)).toMatchObject({ events: first.events + 1 });
    await service.stop();

    const elsewhere = freshFolder();
    const restoring = operatorAt(elsewhere, EMBEDDED);
    const restored = await restoring.run('backup restore', backup);
    expect(restored.stdout).toMatch(
      /^data_dir: .*\nbackup: .*\nidentity: .*\nevents: .*\nlast_position: .*\nlast_recorded_at: +20\d\d-.*Z\n/,
    );
    const again = await restoring.run('backup restore', backup);
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(again.stderr).toContain('A backup is only restored into an empty folder');

    const copy = await startService({ DATA_DIR: elsewhere, ...EMBEDDED });
    const { json } = await ask(`${copy.url}/tenants/self`, { key: service.key });
    expect(json.name).toBe('Between');
  });

  it('says what to do if there is nothing to back up, or another kind of log', async () => {
    const folder = freshFolder();
    const empty = await operatorAt(folder, EMBEDDED).run('backup create', join(folder, 'b'));
    expect([empty.code, empty.stderr]).toEqual([
      1,
      expect.stringContaining('There is no event log in the folder'),
    ]);
    const remote = await operatorAt(folder, clustered('esdb://127.0.0.1:1?tls=false')).run(
      'backup create',
      join(folder, 'b'),
    );
    expect([remote.code, remote.stderr]).toEqual([1, expect.stringContaining('docs/backup.md')]);
    const none = await operatorAt(folder, EMBEDDED).run('backup verify', folder);
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('contains no backup')]);
  });
});
