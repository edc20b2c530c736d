import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { startStandIn } from './stand-in';

/**
 * `npm run test:eventstore [-- OPTION… PATTERN…]`: the contract, the faults and the whole-service stories with the event log on
 * the server that EVENTSTORE_URL names, or else on the stand-in.
 */
const ROOT = join(__dirname, '..', '..', '..', '..');
const USUAL = [
  'event-log/eventstoredb',
  'event-log/copy-adapters',
  'stories',
  'audit',
  'cli/audit',
  'docs/investigations',
  'http/applications',
  'http/client-libraries',
  'http/cross-cutting',
  'http/event-store',
  'http/events',
  'http/idempotency',
  'http/log',
  'http/permissions',
  'http/reports',
  'http/tenants',
  'cli/logs',
  'cli/walk',
];

/** They start stores of their own, or measure times that hold only where no server shares the cores. */
const ELSEWHERE = ['stories/instances', 'stories/round-trips', 'stories/event-loop', 'stories/memory'];
/** The server, or the stand-in, needs a core as well. */
const WORKERS = 2;

const run = async (): Promise<void> => {
  const given = process.env['EVENTSTORE_URL'];
  const standIn = given === undefined || given === '' ? await startStandIn() : undefined;
  const url = standIn?.url ?? given ?? '';
  console.log(
    `The event log is on ${standIn === undefined ? 'the server that EVENTSTORE_URL names' : 'the stand-in'}.`,
  );
  const options = process.argv.slice(2).filter((text) => text.startsWith('-'));
  const wanted = process.argv.slice(2).filter((text) => !text.startsWith('-'));
  const patterns = (wanted.length === 0 ? USUAL : wanted).map((name) => join('dist', 'test', name));
  const ignored = ELSEWHERE.map((name) => `--testPathIgnorePatterns=${name}`);
  const usual = wanted.length === 0 ? [`--maxWorkers=${WORKERS}`, ...ignored] : [];
  const jest = join('node_modules', 'jest', 'bin', 'jest.js');
  const child = spawn(process.execPath, [jest, ...patterns, ...options, ...usual], {
    cwd: ROOT,
    env: { ...process.env, TEST_EVENTSTORE_URL: url },
    stdio: 'inherit',
  });
  const [code] = (await once(child, 'close')) as [number | null];
  await standIn?.stop();
  process.exit(code ?? 1);
};

void run();
