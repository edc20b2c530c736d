import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { digestOf, makeKey } from '../../src/ledger/api-key';
import { openForWriting } from '../../src/sqlite/database';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { closeLedgers, fillStream, makeCustomer, openLedger } from '../support/ledgers';
import { operatorAt, type Operator } from '../support/operator';
import { startService, type Service } from '../support/service';
import { until } from '../support/waiting';

/** This story uses its own event log, wherever the other stories keep theirs. */
const OWN_LOG = { EVENTSTORE_URL: '', STREAM_PREFIX: '' };
const EXAMPLE = randomUUID();
const KEY = makeKey(EXAMPLE);

/** A data folder without read models. Its tenant has six events. */
const makeFolder = async (): Promise<string> => {
  const folder = freshFolder();
  const program = await openLedger(folder);
  const ids = { tenantId: EXAMPLE, applicationId: randomUUID(), keyId: randomUUID(), digest: digestOf(KEY) };
  await makeCustomer(program, { permissions: ['tenant:update', 'log:read'], as: ids });
  await fillStream(program.log, ids, 3);
  await closeLedgers();
  return folder;
};

/** Deletes one event from the file, as a damaged disk or a careless edit would. Returns the id of the next one. */
const lose = (folder: string, stream: string, revision: number): string => {
  const db = openForWriting(join(folder, 'events.db'), 'FULL');
  const { changes } = db
    .prepare('DELETE FROM events WHERE stream = ? AND revision = ?')
    .run(stream, revision);
  expect(changes).toBe(1);
  const next = db.prepare('SELECT id FROM events WHERE stream = ? AND revision = ?');
  const { id } = next.get(stream, revision + 1) as { id: string };
  db.close();
  return id;
};

/** The lines of the log that say that a tenant is parked. */
const parkedLines = (service: Service) =>
  service
    .stderr()
    .split('\n')
    .filter((text) => text.includes('is parked'))
    .map((text) => JSON.parse(text) as { level: number; msg: string; err: { message: string } });

interface Ready {
  readonly status: string;
  readonly read_models: {
    readonly parked: readonly {
      readonly tenant_id: string;
      readonly event_id: string;
      readonly reason: string;
    }[];
  };
  readonly unreadable: readonly { readonly tenant_id: string; readonly reason: string }[];
}

const start = (folder: string): Promise<Service> => startService({ DATA_DIR: folder, ...OWN_LOG });

describe('an event that is missing from a data folder', () => {
  const REASON = `Events are missing from the log: the stream tenant-${EXAMPLE} lacks revision 4 before this event.`;
  let folder: string;
  let eventId: string;
  let service: Service;
  let operator: Operator;

  const readyz = async () => {
    const { status, json } = await ask(`${service.operationsUrl}/readyz`);
    return { status, json: json as Ready };
  };
  const rename = (key: string, name: string) =>
    ask(`${service.url}/tenants/self`, { method: 'PUT', key, body: { name } });

  beforeAll(async () => {
    folder = await makeFolder();
    eventId = lose(folder, `tenant-${EXAMPLE}`, 4);
    service = await start(folder);
    operator = operatorAt(folder, OWN_LOG);
  });

  it('is named by /readyz, which still answers 200, and by one log line', async () => {
    const { status, json } = await readyz();
    expect([status, json.status]).toEqual([200, 'ready']);
    const expected = { tenant_id: EXAMPLE, event_id: eventId, reason: REASON };
    expect(json.read_models.parked).toMatchObject([expected]);
    expect(parkedLines(service)).toMatchObject([
      { level: 40, msg: `Tenant ${EXAMPLE} is parked at event ${eventId}.`, err: { message: REASON } },
    ]);
  });

  it('is named by status and verify, with exit code 1', async () => {
    const status = await operator.run('status');
    expect(status.code).toBe(1);
    expect(status.stderr).toBe('');
    expect(status.stdout).toContain(REASON);
    const verified = await operator.run('projections verify');
    expect(verified.code).toBe(1);
    expect(verified.stderr).toContain(`Tenant ${EXAMPLE}, event ${eventId}. ${REASON}`);
  });

  it('blocks decisions about its tenant, and no other', async () => {
    const refused = await rename(KEY, 'Not now');
    expect([refused.status, refused.json.code]).toEqual([503, 'tenant_unreadable']);
    expect((await readyz()).json.unreadable).toMatchObject([{ tenant_id: EXAMPLE, reason: REASON }]);
    const made = await operator.run('tenant create --name Another --json');
    expect(made.code).toBe(0);
  });

  it('is accepted by set-aside: the read models continue, decisions stay blocked', async () => {
    const done = await operator.json('projections set-aside', eventId, '--reason', 'Lost with a disk.');
    expect(done).toEqual({
      event_id: eventId,
      tenant_id: EXAMPLE,
      what: 'gap accepted',
      parked_at: null,
    });
    await until(async () => {
      const { status, json } = await readyz();
      return status === 200 && json.read_models.parked.length === 0;
    });
    expect((await ask(`${service.url}/logs?size=1`, { key: KEY })).json.code).toBe('tenant_unreadable');
    expect((await rename(KEY, 'Not now')).json.code).toBe('tenant_unreadable');
    expect((await operator.run('projections verify')).code).toBe(0);
    expect((await operator.run('projections rebuild')).code).toBe(0);
  });
});
