import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

/** FerretDB with its SQLite backend: an independent server that speaks MongoDB's protocol, built with Go. */
export interface FerretDb {
  readonly url: string;
  close(): Promise<void>;
}

const ROOT = join(__dirname, '..', '..', '..', '..');
const SOURCE = join(ROOT, 'test', 'support', 'mongodb', 'ferretdb');
const CACHE = join(ROOT, 'node_modules', '.cache', 'tenant-ledger');

const run = promisify(execFile);

export const hasGo = (): Promise<boolean> =>
  run('go', ['version']).then(
    () => true,
    () => false,
  );

/** Builds it once per source; the first build downloads its modules. */
const built = async (): Promise<string> => {
  const hash = createHash('sha256');
  for (const file of ['main.go', 'go.mod', 'go.sum']) hash.update(readFileSync(join(SOURCE, file)));
  const program = join(CACHE, `ferretdb-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(program)) return program;
  console.log('Building FerretDB, once. This takes some minutes.');
  mkdirSync(CACHE, { recursive: true });
  const unfinished = `${program}.${process.pid}`;
  await run('go', ['build', '-o', unfinished, '.'], { cwd: SOURCE });
  renameSync(unfinished, program);
  return program;
};

export const startFerretDb = async (): Promise<FerretDb> => {
  const program = await built();
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-ferretdb-'));
  const child = spawn(program, [folder], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...process.env, DO_NOT_TRACK: '1' },
  });
  const closed = once(child, 'close');
  const lines = createInterface({ input: child.stdout });
  const [url] = (await Promise.race([
    once(lines, 'line'),
    closed.then(() => Promise.reject(new Error('FerretDB ended before it listened.'))),
  ])) as [string];
  return {
    url,
    close: async () => {
      child.stdin.end();
      await closed;
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
