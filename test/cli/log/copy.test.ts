import { DatabaseSync } from '@photostructure/sqlite';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteEventLog } from '../../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../../src/event-log/streams';
import { fillBusyLog } from '../../support/busy-log';
import { freshFolder } from '../../support/folders';
import { operatorAt } from '../../support/operator';
import { command, spawnProgram } from '../../support/service';
import { until } from '../../support/waiting';

const run = operatorAt(freshFolder());

interface Report {
  readonly events: number;
  readonly copied: number;
  readonly source_digest: string;
  readonly target_digest: string;
}

const copy = (from: string, to: string, ...more: readonly string[]): Promise<Report> =>
  run.json<Report>('log copy', '--from', from, '--to', to, ...more);

const rowsOf = (folder: string): readonly unknown[] => {
  const db = new DatabaseSync(join(folder, 'events.db'), { readOnly: true });
  try {
    return db.prepare('SELECT * FROM events ORDER BY position').all();
  } finally {
    db.close();
  }
};

const countIn = (folder: string): number => {
  try {
    return rowsOf(folder).length;
  } catch {
    return 0;
  }
};

const withLog = async (folder: string, count: number): Promise<string> => {
  const streams = streamNames();
  const log = await sqliteEventLog(folder, streams);
  await fillBusyLog({ log, streams }, count);
  await log.close();
  return folder;
};

const EMBEDDED = { EVENTSTORE_URL: '', MONGODB_URL: '' };

/** Neither a server nor a command uses it, and nothing is written to it. */
const expectUnfinished = async (folder: string): Promise<void> => {
  const before = countIn(folder);
  const env = { DATA_DIR: folder, PORT: '0', OPS_PORT: '0', ...EMBEDDED };
  const lines = [['serve'], ['tenant', 'create', '--name', 'X'], ['audit']];
  for (const line of lines) {
    const { code, stdout, stderr } = await command(line, env);
    expect({ line, code, stdout }).toEqual({ line, code: 1, stdout: '' });
    expect(stderr).toMatch(/Run the same `tenant-ledger log copy` again.*log_incomplete/s);
  }
  expect(countIn(folder)).toBe(before);
};

describe('tenant-ledger log copy', () => {
  it('killed before its first event is no first start', async () => {
    const [from, to] = [await withLog(freshFolder(), 10), freshFolder()];
    const child = spawnProgram(['log', 'copy', '--from', from, '--to', to], {});
    const ended = once(child, 'close');
    await until(() => existsSync(join(to, 'events.db')));
    child.kill('SIGKILL');
    await ended;
    expect(countIn(to)).toBe(0);
    await expectUnfinished(to);
    const onward = await run.run('log copy', '--from', to, '--to', freshFolder());
    expect([onward.code, onward.stderr]).toEqual([1, expect.stringContaining('[log_incomplete]')]);
    expect(await copy(from, to)).toMatchObject({ events: 10, copied: 10 });
    expect((await operatorAt(to, EMBEDDED).run('audit')).code).toBe(0);
  });

  it('creates a log that the service works on as before', async () => {
    const [from, to] = [operatorAt(freshFolder()), operatorAt(freshFolder())];
    const { tenant_id: id } = await from.json('tenant create', '--name', 'Émile & Sons');
    const report = await from.run('log copy', '--from', 'configured', '--to', to.folder);
    expect(report).toMatchObject({ code: 0, stderr: '' });
    expect(report.stdout).toMatch(/^from: .*\nto: .*\nevents: .*\ncopied: /);
    expect(report.stdout).toContain(from.folder);
    const [there, here] = await Promise.all([to, from].map((side) => side.json(`tenant show ${id}`)));
    expect(there).toEqual(here);
  });

  it('follows a growing source until it is quiet, and accepts prefixes', async () => {
    const [from, to] = [freshFolder(), freshFolder()];
    const streams = streamNames('old-');
    const log = await sqliteEventLog(from, streams);
    await fillBusyLog({ log, streams }, 100);
    const line = ['log', 'copy', '--from', from, '--to', to, '--from-prefix', 'old-', '--to-prefix', ''];
    const copying = command([...line, '--follow-until-quiet', '1'], { STREAM_PREFIX: 'wrong-' });
    await until(() => countIn(to) > 0);
    await fillBusyLog({ log, streams }, 100);
    expect(await copying).toMatchObject({ code: 0 });
    expect(countIn(to)).toBe(200);
    await log.close();
  });

  it('says which prefix a log has, and which option names it', async () => {
    const [from, to] = [await withLog(freshFolder(), 10), freshFolder()];
    const other = freshFolder();
    await (await sqliteEventLog(other, streamNames('other-'))).close();
    const refused = async (...line: readonly string[]) => {
      const { code, stdout, stderr } = await run.run('log copy', ...line);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      return stderr;
    };
    expect(await refused('--from', from, '--to', to, '--from-prefix', 'x-')).toMatch(
      /have the prefix "", but --from-prefix, or without it STREAM_PREFIX, is "x-"\. .* \[log_of_another_prefix\]\n$/,
    );
    expect(await refused('--from', from, '--to', other)).toMatch(/"other-", but --to-prefix, .* is ""\./);
    expect(await refused('--from', other, '--to', to)).toMatch(/"other-", but --from-prefix, .* is ""\./);
    expect(countIn(other)).toBe(0);
  });

  it('states in one sentence what is wrong with an address, and never shows a password', async () => {
    const line = ['log copy', '--from', 'postgres://me:hunter2@db/x', '--to', freshFolder()] as const;
    const { code, stdout, stderr } = await run.run(...line);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      /postgres:\/\/…@db\/x is not the address of an event log\..* \[log_not_found\]\n$/,
    );
  });
});
