import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/**
 * `npm run test:eventstore [-- OPTION… PATTERN…]`: the whole-service tests with the event log on the server that
 * EVENTSTORE_URL names, and the contract of its adapter; or else on stand-ins, one for each test file.
 */
const ROOT = join(__dirname, '..', '..', '..', '..');
/** On a stand-in, `npm test` runs these. */
const ADAPTER = ['event-log/eventstoredb', 'event-log/copy-adapters'];
const SERVICE = [
  'stories',
  'audit',
  'cli/audit',
  'docs/investigations',
  'http/applications',
  'http/cross-cutting',
  'http/events',
  'http/idempotency',
  'http/logs',
  'http/reports',
  'http/tenants',
  'cli/logs',
];

/**
 * `npm test` runs these: they choose their own stores, are not about the log, need a large one, or measure times that
 * hold only where no server shares the cores.
 */
const ELSEWHERE =
  'stories/(combinations|crash|earlier-release|event-loop|instances|memory|missing-events|requests|resumed-streams|round-trips|stream-prefix|switches)|audit/find-event';

/** The server, or the stand-ins, need a core as well. */
const WORKERS = 2;

const run = async (): Promise<void> => {
  const named = process.env['EVENTSTORE_URL'] ?? '';
  console.log(
    `The event log is on ${named === '' ? 'stand-ins, one for each test file' : 'the server that EVENTSTORE_URL names'}.`,
  );
  const options = process.argv.slice(2).filter((text) => text.startsWith('-'));
  const wanted = process.argv.slice(2).filter((text) => !text.startsWith('-'));
  const usual = [...(named === '' ? [] : ADAPTER), ...SERVICE];
  const patterns = (wanted.length === 0 ? usual : wanted).map((name) => join('dist', 'test', name));
  const limits =
    wanted.length === 0 ? [`--testPathIgnorePatterns=${ELSEWHERE}`, `--maxWorkers=${WORKERS}`] : [];
  const jest = join('node_modules', 'jest', 'bin', 'jest.js');
  const child = spawn(process.execPath, [jest, ...patterns, ...limits, ...options], {
    cwd: ROOT,
    env: { ...process.env, TEST_EVENTSTORE_URL: named === '' ? 'stand-in' : named },
    stdio: 'inherit',
  });
  const [code] = (await once(child, 'close')) as [number | null];
  process.exit(code ?? 1);
};

void run();
