import { DatabaseSync } from '@photostructure/sqlite';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import { freshFolder } from '../support/folders';
import { fillLargeLog } from '../support/large-log';
import { operatorAt } from '../support/operator';
import { commandProcess, serviceProcess, spawnProgram } from '../support/service';
import { until } from '../support/waiting';

/** So many that each command takes much longer than it takes to stop it. */
const EVENTS = 30_000;
const EMBEDDED = { EVENTSTORE_URL: '', MONGODB_URL: '' };

const at = (folder: string) => operatorAt(folder, EMBEDDED);

const countIn = (folder: string): number => {
  const db = new DatabaseSync(join(folder, 'events.db'), { readOnly: true });
  try {
    return (db.prepare('SELECT count(*) AS events FROM events').get() as { events: number }).events;
  } finally {
    db.close();
  }
};

/** A command that is halfway: something in the folder shows that it has begun, and it goes no further. */
const stoppedHalfway = async (
  line: readonly string[],
  folder: string,
  hasBegun: () => boolean,
): Promise<ChildProcess> => {
  const child = spawnProgram(line, { DATA_DIR: folder, ...EMBEDDED });
  while (!hasBegun() && child.exitCode === null) await pause(1);
  child.kill('SIGSTOP');
  expect(child.exitCode).toBe(null);
  return child;
};

const kill = async (child: ChildProcess): Promise<void> => {
  const ended = once(child, 'close');
  child.kill('SIGKILL');
  await ended;
};

const finish = async (child: ChildProcess): Promise<number | null> => {
  const ended = once(child, 'close');
  child.kill('SIGCONT');
  return ((await ended) as [number | null])[0];
};

const [source, backup] = [freshFolder(), join(freshFolder(), 'backup')];
beforeAll(async () => {
  await fillLargeLog(source, EVENTS);
  await at(source).json('backup create', backup);
});

const restoring = (target: string): Promise<ChildProcess> =>
  // Once it has written to the file, it also has it locked.
  stoppedHalfway(['backup', 'restore', backup], target, () =>
    readdirSync(target).some(
      (name) => name.startsWith('events.db.restoring') && statSync(join(target, name)).size > 0,
    ),
  );

const serve = (folder: string) =>
  commandProcess(['serve'], { DATA_DIR: folder, PORT: '0', OPS_PORT: '0', ...EMBEDDED });

describe('a restore that was killed', () => {
  it('is no first start for anything, and runs to its end when it is run again', async () => {
    const target = freshFolder();
    await kill(await restoring(target));
    const remains = readdirSync(target);
    for (const line of [
      'serve',
      'tenant create --name X',
      'tenant list',
      `log copy --from ${backup} --to ${target}`,
    ]) {
      const { code, stdout, stderr } = await commandProcess(line.split(' '), {
        DATA_DIR: target,
        PORT: '0',
        OPS_PORT: '0',
        ...EMBEDDED,
      });
      expect({ line, code, stdout }).toEqual({ line, code: 1, stdout: '' });
      expect(stderr).toContain('tenant-ledger backup restore');
      expect(stderr).toContain('log_incomplete');
    }
    expect(readdirSync(target)).toEqual(remains);
    expect(await at(target).json('backup restore', backup)).toMatchObject({ events: EVENTS });
    expect(readdirSync(target)).toEqual(['events.db']);
    expect(await at(target).json('log verify')).toMatchObject({ events: EVENTS, findings_total: 0 });
  });
});

describe('a restore in progress', () => {
  it('is left alone by a server that a supervisor keeps starting, which then serves what was restored', async () => {
    const target = freshFolder();
    const restore = await restoring(target);
    for (let starts = 0; starts < 2; starts += 1) {
      const { code, stdout, stderr } = await serve(target);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain('log_incomplete');
    }
    const second = await at(target).run('backup restore', backup);
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('[restore_refused]')]);
    expect(await finish(restore)).toBe(0);
    const service = await serviceProcess({ DATA_DIR: target, ...EMBEDDED });
    expect(service.key).toBe('');
    await service.stop();
    expect(countIn(target)).toBe(countIn(source));
  });
});

describe('a backup in progress', () => {
  const hasLost = (): boolean => {
    try {
      return countIn(backup) <= EVENTS;
    } catch {
      return false; // locked
    }
  };
  const isBeingWritten = (): boolean =>
    ['-wal', '-journal'].some((end) => existsSync(join(backup, `events.db${end}`)));

  it('is not harmed by a second one that is killed', async () => {
    await fillLargeLog(source, EVENTS);
    const first = await stoppedHalfway(['backup', 'create', backup], source, isBeingWritten);
    const second = spawnProgram(['backup', 'create', backup], { DATA_DIR: source, ...EMBEDDED });
    await until(() => second.exitCode !== null || hasLost());
    if (second.exitCode === null) await kill(second);
    expect(await finish(first)).toBe(0);
    expect(await at(source).json('backup verify', backup)).toMatchObject({ events: 2 * EVENTS });
  });
});
