import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The words into which a shell splits a line, with these variables. */
export const shellWords = async (line: string, env: Readonly<Record<string, string>> = {}) => {
  const { stdout } = await run('sh', ['-c', String.raw`printf '%s\n' ${line}`], { env });
  return stdout.trimEnd().split('\n');
};
