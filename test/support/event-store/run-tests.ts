import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { startStandIn } from './stand-in';

/**
 * `npm run test:eventstore [PATTERN…]`: the contract, the faults and the whole-service stories with the event log on
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

const run = async (): Promise<void> => {
  const given = process.env['EVENTSTORE_URL'];
  const standIn = given === undefined || given === '' ? await startStandIn() : undefined;
  const url = standIn?.url ?? given ?? '';
  console.log(
    `The event log is on ${standIn === undefined ? 'the server that EVENTSTORE_URL names' : 'the stand-in'}.`,
  );
  const wanted = process.argv.slice(2);
  const patterns = (wanted.length === 0 ? USUAL : wanted).map((name) => join('dist', 'test', name));
  const child = spawn(process.execPath, [join('node_modules', 'jest', 'bin', 'jest.js'), ...patterns], {
    cwd: ROOT,
    env: { ...process.env, TEST_EVENTSTORE_URL: url },
    stdio: 'inherit',
  });
  const [code] = (await once(child, 'close')) as [number | null];
  await standIn?.stop();
  process.exit(code ?? 1);
};

void run();
