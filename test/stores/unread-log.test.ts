import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';
import { hasHeaderPrefix } from '../support/described';
import { freePort } from '../support/free-port';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { until } from '../support/waiting';

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
/** Their log lines exceed what a pipe holds. */
const REQUESTS = 400;

/** A pipe that is open for reading, and never read. */
const unreadPipe = () => {
  const path = join(freshFolder(), 'log');
  execFileSync('mkfifo', [path]);
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { reading, writing: openSync(path, constants.O_WRONLY) };
};

describe('a server whose log nobody reads', () => {
  const pipe = unreadPipe();
  afterAll(() => closeSync(pipe.reading));

  it('answers requests, and SIGTERM ends it', async () => {
    const port = await freePort();
    const child = spawn(process.execPath, [MAIN, 'serve'], {
      env: {
        PATH: process.env['PATH'] ?? '',
        DATA_DIR: freshFolder(),
        PORT: port,
        OPS_PORT: '0',
        RATE_LIMITS: 'off',
      },
      stdio: ['ignore', 'pipe', pipe.writing],
    });
    closeSync(pipe.writing);
    let stdout = '';
    child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    const url = `http://127.0.0.1:${port}`;
    hasHeaderPrefix(url, 'SVC');
    await until(() => stdout.includes('serves http'), 20_000, 'ready');
    for (let sent = 0; sent < REQUESTS; sent += 1)
      expect((await ask(`${url}/nowhere`, { headers: { 'SVC-TRACE-ID': 'x'.repeat(128) } })).status).toBe(
        404,
      );
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await ended).toEqual([null, 'SIGKILL']);
  });
});
