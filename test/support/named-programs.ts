import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface NamedProgram {
  readonly meaning: string;
  /** Files below `dist`, without their ending: one program, or test files for Jest. */
  readonly files: readonly string[];
  readonly nodeOptions?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const ROOT = join(__dirname, '..', '..', '..');
const JEST = join('node_modules', 'jest', 'bin', 'jest.js');

/** The longest time that a timer can be set to. */
const NO_LIMIT_MS = 2 ** 31 - 1;

const argumentsOf = ({ files, nodeOptions = [] }: NamedProgram): readonly string[] => {
  const paths = files.map((file) => join('dist', `${file}.js`));
  const isTest = files.every((file) => file.endsWith('.test'));
  return isTest
    ? [JEST, '--testPathIgnorePatterns=none', '--runInBand', `--testTimeout=${NO_LIMIT_MS}`, ...paths]
    : [...nodeOptions, ...paths];
};

export const runNamed = async (
  script: string,
  programs: Readonly<Record<string, NamedProgram>>,
  [name = '', ...others]: readonly string[] = process.argv.slice(2),
): Promise<void> => {
  const program = programs[name];
  if (program === undefined) {
    const width = Math.max(...Object.keys(programs).map((known) => known.length));
    for (const [known, { meaning }] of Object.entries(programs))
      console.log(`npm run ${script} -- ${known.padEnd(width)} ${meaning}`);
    process.exitCode = name === '' ? 0 : 2;
    return;
  }
  const child = spawn(process.execPath, [...argumentsOf(program), ...others], {
    cwd: ROOT,
    env: { ...program.env, ...process.env, [script.toUpperCase()]: name },
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, 'close')) as [number | null];
  process.exitCode = code ?? 1;
};
