import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openForWriting } from '../../src/sqlite/database';
import { fileOf, manyFacts } from '../support/facts';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { itIf } from '../support/it-if';
import { logOf } from '../support/log-under-test';
import { operatorAt } from '../support/operator';
import { seed, seeded } from '../support/property';
import { startService } from '../support/service';
import { until } from '../support/waiting';

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

/** Ctrl-Z stops a process only if a shell with job control has started it. */
const JOB = 'set -m; exec 3>&2 2>/dev/null; "$@" 2>&3 & echo $!; read _; wait $!';
const hasJobControl =
  process.platform === 'linux' &&
  spawnSync('bash', ['--norc', '-c', JOB, 'job', 'true'], { input: '\n' }).status === 0;
const whereJobs = itIf(hasJobControl, 'no bash with job control');

const stateOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .slice(0, 1);
  } catch {
    return 'gone';
  }
};

const shells: ChildProcess[] = [];
const started: number[] = [];
afterAll(() => {
  for (const shell of shells) shell.kill('SIGKILL');
  for (const pid of started) if (!['Z', 'gone'].includes(stateOf(pid))) process.kill(pid, 'SIGKILL');
});

/** A command run by a shell as its own job. */
const job = async (args: readonly string[], folder: string) => {
  const shell = spawn('bash', ['--norc', '-c', JOB, 'job', process.execPath, MAIN, ...args], {
    env: { PATH: process.env['PATH'] ?? '', DATA_DIR: folder, ...logOf(folder) },
  });
  shells.push(shell);
  let stdout = '';
  let stderr = '';
  shell.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  shell.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const closed = once(shell, 'close');
  await until(() => stdout.includes('\n'));
  const pid = Number(stdout.split('\n')[0]);
  started.push(pid);
  const isOver = (): boolean => ['Z', 'gone'].includes(stateOf(pid));
  return {
    isOver,
    ended: async () => {
      await until(isOver, 60_000, 'the command ends');
      shell.stdin.end('\n');
      const [code] = (await closed) as [number];
      return { code, stderr };
    },
    stop: async () => {
      process.kill(pid, 'SIGTSTP');
      await until(() => isOver() || stateOf(pid) === 'T', 20_000, 'the command is stopped');
    },
    resume: () => process.kill(pid, 'SIGCONT'),
  };
};

const STOPS = 6;

describe('a command stopped with Ctrl-Z', () => {
  whereJobs(
    seeded('holds no lock that the server needs'),
    async () => {
      const service = await startService();
      const { tenant_id: tenant } = await operatorAt(service.folder).json('tenant create --name A');
      const facts = manyFacts([tenant ?? ''], 9_000, seed);
      const ingesting = await job(['ingest', '--json', fileOf(facts)], service.folder);
      const head = async () => (await ask(`${service.operationsUrl}/readyz`)).json.log.head as string;
      let stops = 0;
      for (let before = await head(); stops < STOPS && !ingesting.isOver(); stops += 1) {
        await until(async () => ingesting.isOver() || (await head()) > before);
        if (ingesting.isOver()) break;
        await ingesting.stop();
        const put = { method: 'PUT', key: service.key, body: { name: `Written ${stops}` } };
        const { status, headers } = await ask(`${service.url}/tenants/self`, put);
        expect({ status, pending: headers.get('svc-read-pending') }).toEqual({ status: 200, pending: null });
        expect((await ask(`${service.operationsUrl}/readyz`)).status).toBe(200);
        before = await head();
        ingesting.resume();
      }
      expect(stops).toBeGreaterThan(3);
      expect(await ingesting.ended()).toMatchObject({ code: 0, stderr: '' });
      await service.stop();
    },
    90_000,
  );

  whereJobs(
    seeded('holds no lock that other commands need, even if it projects on its own'),
    async () => {
      const operator = operatorAt(freshFolder());
      const { tenant_id: tenant } = await operator.json('tenant create --name A');
      const facts = manyFacts([tenant ?? ''], 3_000, seed);
      const ingesting = await job(['ingest', '--json', fileOf(facts)], operator.folder);
      for (let stops = 0; stops < 3; stops += 1) {
        await ingesting.stop();
        expect(await operator.run('tenant create --name B')).toMatchObject({ code: 0 });
        expect(await operator.run(`projections retry --tenant ${tenant}`)).toMatchObject({ code: 0 });
        ingesting.resume();
      }
      expect(await ingesting.ended()).toMatchObject({ code: 0, stderr: '' });
      expect((await operator.run('projections verify')).code).toBe(0);
    },
    90_000,
  );
});

describe('a process stopped while it holds the write lock of the log', () => {
  it('makes the server report that it is not ready, and why, until the process continues', async () => {
    const service = await startService({ EVENTSTORE_URL: '' });
    const ready = () => ask(`${service.operationsUrl}/readyz`);
    expect((await ready()).status).toBe(200);
    const other = openForWriting(join(service.folder, 'events.db'), 'FULL');
    other.exec('BEGIN IMMEDIATE');
    expect(await ready()).toMatchObject({
      status: 503,
      json: { status: 'unavailable', reason: expect.stringContaining('holds its lock') },
    });
    const put = { method: 'PUT', key: service.key, body: { name: 'Not now' } };
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(503);
    other.exec('ROLLBACK');
    other.close();
    expect((await ready()).status).toBe(503);
    expect((await ask(`${service.url}/tenants/self`, put)).status).toBe(200);
    expect((await ready()).status).toBe(200);
    await service.stop();
  });
});
