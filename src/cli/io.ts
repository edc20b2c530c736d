import type { Times } from '../times';

interface Output extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly fd?: number;
}

/** What a command uses of its process. Tests pass their own, to run commands in the process of the tests. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  /** What a command is asked for goes here. */
  readonly stdout: Output;
  /** Messages for people go here. */
  readonly stderr: Output;
  /** The exit code of the command once it has ended. */
  exitCode?: number | string | null | undefined;
  /** The times of a test are shorter. */
  readonly times?: Times;
  umask(mask: number): unknown;
  /** Exits at once, whatever is still running. */
  exit(code: number): void;
  /** A handled signal neither ends nor stops the process. */
  on(signal: NodeJS.Signals, handle: (signal: NodeJS.Signals) => void): unknown;
  once(signal: NodeJS.Signals, handle: (signal: NodeJS.Signals) => void): unknown;
}
