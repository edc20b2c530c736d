import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';
import type { Finding } from '../../../src/app/doctor';
import { formats, NEWEST_FORMAT } from '../../../src/domain/formats';
import { EXAMPLE, folderOfRelease010 } from '../../support/earlier-folder';
import { freshFolder } from '../../support/folders';
import { EMBEDDED } from '../../support/profile';
import { operatorAt, type Operator } from '../../support/operator';

const NEWEST = String(NEWEST_FORMAT);
const at = (folder: string): Operator => operatorAt(folder, EMBEDDED);

/** As stored in the file. */
const formatIn = (folder: string): string | undefined => {
  const db = new DatabaseSync(join(folder, 'events.db'), { readOnly: true });
  try {
    const row = db.prepare(`SELECT value FROM meta WHERE name = 'format'`).get();
    return (row as { value: string } | undefined)?.value;
  } finally {
    db.close();
  }
};

const formatFinding = async (operator: Operator): Promise<Finding | undefined> =>
  (JSON.parse((await operator.run('doctor --json')).stdout) as Finding[]).find(
    ({ check }) => check === 'format',
  );

interface Status {
  readonly log: { readonly format: number; readonly newest_format: number };
}

describe('tenant-ledger log upgrade', () => {
  it('raises the format of a log created by earlier programs, once it is confirmed', async () => {
    const operator = at(folderOfRelease010());
    expect((await operator.json<Status>('status')).log).toMatchObject({
      format: 1,
      newest_format: NEWEST_FORMAT,
    });
    expect((await operator.run('status')).stdout).toMatch(
      /format: +1; [0-9]+ after: tenant-ledger log upgrade/,
    );
    expect(await formatFinding(operator)).toMatchObject({
      status: 'problem',
      finding: expect.stringContaining('keys with a name'),
      fix: expect.stringContaining('tenant-ledger log upgrade'),
    });

    const asked = await operator.run('log upgrade');
    expect([asked.code, asked.stdout]).toEqual([1, '']);
    expect(asked.stderr).toContain(`Format ${NEWEST} allows keys with a name`);
    expect(asked.stderr).toContain('Give --yes');
    const inJson = await operator.run('log upgrade --json');
    expect([inJson.code, JSON.parse(inJson.stderr)]).toMatchObject([1, { error: { code: 'not_confirmed' } }]);
    expect(formatIn(operator.folder)).toBeUndefined();

    const raised = await operator.run('log upgrade --yes --json');
    expect(raised.code).toBe(0);
    expect(JSON.parse(raised.stdout)).toEqual({
      log: join(operator.folder, 'events.db'),
      format_before: 1,
      format: NEWEST_FORMAT,
      allowed: formats.slice(1).map(({ allows }) => allows),
    });
    expect(formatIn(operator.folder)).toBe(NEWEST);
    expect((await operator.json<Status>('status')).log.format).toBe(NEWEST_FORMAT);
    expect(await formatFinding(operator)).toMatchObject({ status: 'ok' });
    expect(await operator.json('log upgrade')).toMatchObject({
      format_before: NEWEST_FORMAT,
      format: NEWEST_FORMAT,
      allowed: [],
    });
  });

  it('is what audit --key names where reads are not recorded yet', async () => {
    const operator = at(folderOfRelease010());
    const notice = async () => (await operator.run(`audit --key ${EXAMPLE}`)).stderr;
    expect(await notice()).toContain('recorded once the log is upgraded (tenant-ledger log upgrade)');
    await operator.run('log upgrade --yes');
    expect(await notice()).toContain('summed up per UTC day (KeyUsed)');
  });

  it('is not needed for a log that this program creates', async () => {
    const operator = at(freshFolder());
    await operator.json('tenant create --name Acme');
    expect(formatIn(operator.folder)).toBe(NEWEST);
  });

  it('does not create a log', async () => {
    const { code, stderr } = await at(freshFolder()).run('log upgrade --yes');
    expect([code, stderr]).toEqual([1, expect.stringContaining('There is no')]);
  });

  it('has an effect that copies and backups keep', async () => {
    const source = at(folderOfRelease010());
    const copies = [freshFolder(), freshFolder()];
    const copied = (target: string) => source.json('log copy', '--from', source.folder, '--to', target);
    const restored = async (): Promise<string> => {
      const [backup, target] = [freshFolder(), at(freshFolder())];
      await source.json('backup create', backup);
      await target.json('backup restore', backup);
      return target.folder;
    };
    await copied(copies[0]!);
    expect([formatIn(copies[0]!), formatIn(await restored())]).toEqual(['1', undefined]);
    await source.run('log upgrade --yes');
    for (const copy of copies) await copied(copy);
    expect([...copies, await restored()].map(formatIn)).toEqual([NEWEST, NEWEST, NEWEST]);
  });

  it('makes programs that do not know the format refuse the log', async () => {
    const operator = at(folderOfRelease010());
    const db = new DatabaseSync(join(operator.folder, 'events.db'));
    db.exec(`INSERT INTO meta VALUES ('format', '${NEWEST_FORMAT + 1}')`);
    db.close();
    const { code, stderr } = await operator.run('tenant list --json');
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'log_of_newer_program' } });
  });
});
