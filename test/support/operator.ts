import type { LoggedEvent } from '../../src/event-log/event-log';
import { eventsOf } from './events';
import { openAppIn } from './profile';
import { command, type commandProcess, type Finished } from './service';

export interface Operator {
  readonly folder: string;
  /** The line is split at its spaces; arguments that contain spaces are given separately. */
  run(line: string, ...more: readonly string[]): Promise<Finished>;
  runAll(lines: readonly string[]): Promise<readonly Finished[]>;
  json<T = Record<string, string>>(line: string, ...more: readonly string[]): Promise<T>;
}

/**
 * Commands run in the process of the tests. `commandProcess` is for tests that change files under a store, since there a
 * closed connection may keep its file open until its statements are garbage-collected.
 */
export const operatorAt = (
  folder: string,
  env: Readonly<Record<string, string>> = {},
  execute: typeof command | typeof commandProcess = command,
): Operator => {
  const run: Operator['run'] = (line, ...more) =>
    execute([...line.split(' ').filter((word) => word !== ''), ...more], { DATA_DIR: folder, ...env });
  return {
    folder,
    run,
    runAll: (lines) => fewAtOnce(lines, (line) => run(line), 1),
    json: async <T>(line: string, ...more: readonly string[]) => {
      const { code, stdout, stderr } = await run(line, ...more, '--json');
      if (code !== 0 || stderr !== '') throw new Error(`${line} ended with ${code}: ${stderr}`);
      return JSON.parse(stdout) as T;
    },
  };
};

export const eventsIn = async (folder: string): Promise<readonly LoggedEvent[]> => {
  const { log, close } = await openAppIn(folder);
  try {
    return await eventsOf(log.readAll());
  } finally {
    await close();
  }
};

export const fewAtOnce = async <T, R>(items: readonly T[], work: (item: T) => Promise<R>, lanes: number) => {
  const results: R[] = [];
  const queue = [...items.entries()];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: lanes }, worker));
  return results;
};
