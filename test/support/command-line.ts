import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import type { Io } from '../../src/cli/io';
import { main } from '../../src/cli/main';
import { TIMES, type Times } from '../../src/times';

/** A command line that runs in the process of the tests, with streams in memory. */
export interface Running {
  readonly stdin: PassThrough;
  stdout(): string;
  stderr(): string;
  /** As if the process got it. */
  signal(name: NodeJS.Signals): void;
  /** When the command is done, with its exit code. `serve` is done when the server is ready, has failed or was stopped. */
  readonly done: Promise<number>;
  /** When it exits by itself, as a server does in the end. */
  readonly exited: Promise<number>;
}

const collecting = (isTTY: boolean) => {
  const chunks: Buffer[] = [];
  const stream = new Writable({ write: (chunk: Buffer, _, next) => (chunks.push(chunk), next()) });
  return { stream: Object.assign(stream, { isTTY }), text: () => Buffer.concat(chunks).toString() };
};

/** What keys did is appended when the server stops: most tests are about other events. */
export const TEST_TIMES: Times = { ...TIMES, keyUsesMs: 3_600_000 };

export const run = (
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { isTerminal = false, times = TEST_TIMES }: { readonly isTerminal?: boolean; readonly times?: Times } = {},
): Running => {
  const stdin = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const [stdout, stderr] = [collecting(isTerminal), collecting(isTerminal)];
  const signals = new EventEmitter();
  let exit: (code: number) => void = () => undefined;
  const exited = new Promise<number>((resolve) => (exit = resolve));
  const io: Io = {
    env,
    stdin,
    stdout: stdout.stream,
    stderr: stderr.stream,
    times,
    umask: () => undefined,
    exit,
    on: (signal, handle) => signals.on(signal, handle),
    once: (signal, handle) => signals.once(signal, handle),
  };
  const done = main([process.execPath, 'tenant-ledger', ...args], io).then(() => Number(io.exitCode ?? 0));
  return {
    stdin,
    stdout: stdout.text,
    stderr: stderr.text,
    signal: (name) => {
      if (!signals.emit(name, name)) throw new Error(`${args.join(' ')} does not handle ${name}.`);
    },
    done,
    exited,
  };
};
