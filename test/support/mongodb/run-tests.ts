import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { hasGo, startFerretDb } from './ferretdb';

/**
 * `npm run test:mongodb [PATTERN…]`: the contract of read models, what the stand-in promises, and the whole-service
 * stories, with the read models on the server that MONGODB_URL names, or else on FerretDB if Go is installed.
 */
const ROOT = join(__dirname, '..', '..', '..', '..');
const JEST = join('node_modules', 'jest', 'bin', 'jest.js');
const USUAL = [
  'mongodb/behaviour',
  'mongodb/shared-secret',
  'read-models/mongodb.test',
  'read-models/mongodb-questions',
  'key-uses/mongodb',
  'limits/mongo-counters',
  'http/tenants',
  'http/permissions',
  'http/reports',
  'http/idempotency',
];

/**
 * Tests that FerretDB 1.24 cannot pass, by name. Its updates are not atomic: concurrent ones all find the document as
 * it was before. It closes the connection of one of two clients that create the same indexes. And a bulk of thousands
 * of writes takes longer there than the driver waits.
 */
const NOT_JUDGED_BY_FERRETDB = [
  'wins alone among many with the same n',
  'is consistent while another process commits', // a reader that completes a commit may undo the next one
  'is moved by only one of many at once',
  'are given out once each, whoever asks',
  'is taken by only one of many at once',
  'does not disturb another build of the same generation',
  'are counted, and visible to other processes',
  'and switching to it exclude each other, whichever comes first',
  'can be opened by two at once',
  'of thousands of documents is atomic',
  'are found among thousands of documents, a few at a time',
];
const judged = `^(?!.*(?:${NOT_JUDGED_BY_FERRETDB.join('|')})).*$`;

const run = async (): Promise<void> => {
  const given = process.env['MONGODB_URL'] ?? '';
  if (given === '' && !(await hasGo())) {
    console.log(
      'Skipped: npm run test:mongodb needs Go, to build FerretDB, or a server that MONGODB_URL names.',
    );
    return;
  }
  const ferretDb = given === '' ? await startFerretDb() : undefined;
  console.log(
    `The read models are on ${ferretDb === undefined ? 'the server that MONGODB_URL names' : 'FerretDB'}.`,
  );
  const wanted = process.argv.slice(2);
  const patterns = (wanted.length === 0 ? USUAL : wanted).map((name) => join('dist', 'test', name));
  const { MONGODB_URL: _, ...rest } = process.env;
  // FerretDB is much slower than the stand-in: a test of sixty commits has taken more than 30 s on a busy machine.
  const named = ferretDb === undefined ? [] : ['--testNamePattern', judged, '--testTimeout', '120000'];
  const child = spawn(process.execPath, [JEST, ...named, ...patterns], {
    cwd: ROOT,
    env: {
      ...rest,
      TEST_MONGODB_URL: ferretDb?.url ?? given,
      ...(ferretDb === undefined ? {} : { TEST_MONGODB_KIND: 'ferretdb' }),
    },
    stdio: 'inherit',
  });
  const [code] = (await once(child, 'close')) as [number | null];
  await ferretDb?.close();
  process.exitCode = code ?? 1;
};

void run();
