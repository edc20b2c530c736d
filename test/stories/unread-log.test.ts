import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, read } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../support/free-port';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { hasHeaderPrefix, isNotTheApi } from '../support/described';
import { converse } from '../support/raw';
import { until } from '../support/waiting';

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
const readFrom = promisify(read);

/** The read end of a server's stderr: unread until the test reads from it, and the test may stop again. */
interface Pipe {
  /** The write end, which the server gets. */
  readonly given: 'pipe' | number;
  readonly start: (child: ChildProcess) => void;
  stop(): void;
  text(): string;
  close(): void;
}

/** As process managers and shells create it. */
const namedPipe = (): Pipe => {
  const path = join(freshFolder(), 'log');
  execFileSync('mkfifo', [path]);
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const given = openSync(path, constants.O_WRONLY);
  let text = '';
  let closed = false;
  let isReading = false;
  const buffer = Buffer.alloc(65_536);
  const readOn = async (): Promise<void> => {
    const { bytesRead } = await readFrom(reading, buffer, 0, buffer.length, null).catch(() => ({
      bytesRead: 0,
    }));
    text += buffer.toString('utf8', 0, bytesRead);
    if (isReading && !closed) setTimeout(() => void readOn(), bytesRead === 0 ? 5 : 0);
  };
  return {
    given,
    start: () => {
      isReading = true;
      void readOn();
    },
    stop: () => (isReading = false),
    text: () => text,
    close: () => {
      if (!closed) closeSync(reading);
      closed = true;
    },
  };
};

/** As Node and journald create it. */
const socketPair = (): Pipe => {
  let text = '';
  let child: ChildProcess | undefined;
  return {
    given: 'pipe',
    start: (started) => {
      child = started;
      started.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    },
    stop: () => void child?.stderr?.pause(),
    text: () => text,
    close: () => void child?.stderr?.destroy(),
  };
};

const startWith = async (pipe: Pipe) => {
  const [port, opsPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, [MAIN, 'serve'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      DATA_DIR: freshFolder(),
      PORT: port,
      OPS_PORT: opsPort,
      RATE_LIMITS: 'off',
      DEMO: 'true',
    },
    stdio: ['ignore', 'pipe', pipe.given],
  });
  if (typeof pipe.given === 'number') closeSync(pipe.given);
  let stdout = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  const url = `http://127.0.0.1:${port}`;
  const operationsUrl = `http://127.0.0.1:${opsPort}`;
  hasHeaderPrefix(url, 'SVC');
  isNotTheApi(operationsUrl);
  await until(() => /\n\n {2}\S.*\n\n$/s.test(stdout), 20_000, 'ready');
  return { child, url, operationsUrl, key: /key_[0-9A-Za-z]+/.exec(stdout)?.[0] ?? '' };
};

type Started = Awaited<ReturnType<typeof startWith>>;

const GOOD = 'HTTP/1.1 200 ';
/** Their log lines exceed what the pipe holds and what the server buffers. */
const MANY = 4_000;
/** Exceeds what a pipe holds. */
const ENOUGH = 800;
/** Pipelines all requests over one connection, and waits for all the responses. */
const askOften = async ({ url, key }: Started, times: number): Promise<void> => {
  const { socket } = converse(url);
  let good = 0;
  let end = '';
  socket.on('data', (chunk: Buffer) => {
    const text = end + chunk.toString('latin1');
    good += text.split(GOOD).length - 1;
    end = text.slice(text.lastIndexOf(GOOD) + 1).slice(1 - GOOD.length);
  });
  const get = (at: number): string =>
    `GET /permissions?application_type=public HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${key}\r\nSVC-TRACE-ID: ${String(at).padStart(128, '.')}\r\n\r\n`;
  socket.write(Array.from({ length: times }, (_, at) => get(at)).join(''));
  await until(() => good === times, 50_000, `${times} answers`);
  socket.destroy();
};

const isAlive = async ({ operationsUrl }: Started): Promise<boolean> =>
  (await ask(`${operationsUrl}/livez`)).status === 200;

interface Line {
  readonly msg: string;
  readonly lost_lines?: number;
}

describe.each([
  ['a pipe', namedPipe],
  ['a socket', socketPair],
])('a server log written to %s', (_, make) => {
  let running: ChildProcess | undefined;
  let pipe: Pipe;
  beforeEach(() => (pipe = make()));
  afterEach(() => {
    running?.kill('SIGKILL');
    pipe.close();
  });

  it('that nobody reads blocks neither the server nor its shutdown; lost lines are counted once somebody reads', async () => {
    const server = await startWith(pipe);
    running = server.child;
    await askOften(server, MANY);
    expect(await isAlive(server)).toBe(true);
    pipe.start(server.child);
    await until(() => pipe.text().includes('lost_lines'), 20_000, 'the count of lost lines');
    // From here on the log is read, and nothing more is lost.
    await ask(`${server.url}/permissions`, { key: server.key, headers: { 'SVC-TRACE-ID': 'the-last-one' } });
    await until(() => /the-last-one.*\n/.test(pipe.text()));
    const lines = pipe
      .text()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    const seen = lines.filter(({ msg }) => msg === 'request').length;
    const lost = lines.map(({ lost_lines = 0 }) => lost_lines).reduce((sum, one) => sum + one, 0);
    expect(lost).toBeGreaterThan(0);
    expect(seen + lost).toBe(MANY + 1);

    pipe.stop();
    await askOften(server, ENOUGH);
    const ended = once(server.child, 'exit');
    server.child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  it('whose reader is gone does not stop the server', async () => {
    const server = await startWith(pipe);
    running = server.child;
    pipe.start(server.child);
    await until(() => pipe.text().includes('"msg":"ready"'));
    pipe.close();
    await askOften(server, ENOUGH);
    expect(await isAlive(server)).toBe(true);
    const ended = once(server.child, 'exit');
    server.child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });
});
