import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { appendToEnd } from '../../src/event-log/event-log';
import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';
import { rename } from '../support/http';
import { storesOf, openLogIn } from '../support/profile';
import { has } from '../support/programs';
import { command, serviceForTests, type Service } from '../support/service';
import { shellWords } from '../support/shell-words';
import { installed } from './installed';
import { blocks } from './pages';

const run = promisify(execFile);

const LINES = blocks('docs/investigations.md', 'sh').flatMap((text) => text.trim().split('\n'));

/** A service with a history that has a result for each question. */
const withHistory = async (service: Service) => {
  const operator = operatorAt(service.folder);
  const headers = { 'SVC-TRACE-ID': 'trace-1' };
  expect((await rename(service, service.key, 'Renamed', { headers })).status).toBe(200);
  const { stdout } = await operator.run('audit --type TenantUpdated');
  const event = JSON.parse(stdout.split('\n')[0] ?? '') as {
    id: string;
    tenant_id: string;
    key_id: string;
    actor: { id: string };
  };
  const { log, streams } = await openLogIn(service.folder);
  const at = new Date().toISOString();
  const data = {
    applicationId: event.actor.id,
    keyId: event.key_id,
    date: at.slice(0, 10),
    operations: {},
    refusals: { expired: 1 },
    missingPermissions: [],
    eventsGivenOut: 0,
    firstAt: at,
    lastAt: at,
  };
  const metadata = { version: 1, client: { address: '127.0.0.1' } };
  const refused = { id: randomUUID(), type: 'KeyUsed', data, metadata };
  try {
    await appendToEnd(log, streams.activity(event.tenant_id), [refused]);
  } finally {
    await log.close();
  }
  return {
    TENANT: event.tenant_id,
    APPLICATION: event.actor.id,
    KEY_ID: event.key_id,
    TRACE: 'trace-1',
    EVENT: event.id,
  };
};

describe('docs/investigations.md', () => {
  const service = serviceForTests();
  let ids: Readonly<Record<string, string>>;
  const [folder, bin] = [freshFolder(), installed()];
  beforeAll(async () => {
    ids = await withHistory(service);
  });

  const isRun = (line: string): boolean => !line.includes('| jq') || has('jq', '--version');
  for (const skipped of LINES.filter((line) => !isRun(line)))
    it.skip(`works as written, but jq is not installed: ${skipped}`, () => undefined);
  /** A command with neither a pipe nor a file in the folder does not need its own process. */
  const isPlain = (line: string): boolean => /^tenant-ledger (?!.*ndjson)[^|>]*$/.test(line);
  it.each(LINES.filter(isPlain))('works as written: %s', async (line) => {
    const [, ...words] = await shellWords(line, ids);
    const { code, stdout } = await command(words, { DATA_DIR: service.folder });
    expect([code, stdout !== '']).toEqual([0, true]);
  });
  it.each(LINES.filter((line) => isRun(line) && !isPlain(line)))('works as written: %s', async (line) => {
    const env = {
      PATH: `${bin}:${process.env['PATH']}`,
      DATA_DIR: service.folder,
      ...storesOf(service.folder),
      ...ids,
    };
    const { stdout } = await run('sh', ['-c', line], { env, cwd: folder });
    if (!line.includes('>')) expect(stdout).not.toBe('');
  });
});
