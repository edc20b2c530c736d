import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';
import { beforeTests } from '../support/before-tests';
import { besideForTests } from '../support/beside';
import { anEvent } from '../support/events';
import { ask, rename, type ApiResponse, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { loggedBy, serviceProcess } from '../support/service';
import { liveSetFile } from '../support/set-files';
import { timed, until } from '../support/waiting';

/** A response comes within 2 s of the arrival of its request; the rest is the way there and back. */
const MAX_MS = 2_200;

/** The files of the stores, locked or damaged from outside while the server runs. */
describe('a server whose stores fail', () => {
  const service = beforeTests(serviceProcess);
  const by = besideForTests(service);
  let key: string;
  let tenantId: string;
  const call = (asking: AskOptions = {}, path = '/tenants/self') =>
    ask(`${service.url}${path}`, { key, ...asking });
  const put = (name: string, headers: Record<string, string> = {}) => rename(service, key, name, { headers });
  const open = (path: string) => new DatabaseSync(path, { timeout: 5_000 });
  const logFile = () => join(service.folder, 'events.db');
  const setFile = () => liveSetFile(service.folder);
  const locking = async (path: string, work: () => Promise<void>): Promise<void> => {
    const db = open(path);
    db.exec('BEGIN IMMEDIATE');
    try {
      await work();
    } finally {
      db.exec('ROLLBACK');
      db.close();
    }
  };

  /** On a busy machine the writer thread may be too late to report that it failed. */
  const expectUnavailable = (response: ApiResponse): void => {
    expectProblem(
      response,
      503,
      response.json.code === 'outcome_unknown' ? 'outcome_unknown' : 'log_unavailable',
    );
    expect(response.headers.get('retry-after')).toBe('1');
  };

  beforeEach(async () => {
    ({ key, tenantId } = await by.newTenant('Acme'));
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
  });

  it('answers 503 in time to writes on a locked event log, still serves reads, is not ready and says why, and recovers', async () => {
    const before = await by.count();
    const ready = () => ask(`${service.operationsUrl}/readyz`);
    await locking(logFile(), async () => {
      expect((await ready()).status).toBe(200);
      const { ms, value } = await timed(() => Promise.all(Array.from({ length: 5 }, (_, i) => put(`B${i}`))));
      expect(ms).toBeLessThan(MAX_MS);
      for (const response of value) expectUnavailable(response);
      expect(await ready()).toMatchObject({
        status: 503,
        json: { status: 'unavailable', reason: expect.stringContaining('Writes are failing.') },
      });
      const lines = () => loggedBy(service, String(value[0]?.json.trace_id));
      await until(() => lines().length > 0);
      expect(lines()).toEqual([expect.objectContaining({ level: 40 })]);
      const read = await timed(() => call());
      expect([read.value.status, read.value.json.name]).toEqual([200, 'Acme']);
      expect((await call({}, '/permissions')).status).toBe(200);
    });
    expect(await by.count()).toBe(before);
    expect((await ready()).status).toBe(503);
    expect((await put('After')).status).toBe(200);
    expect((await ready()).status).toBe(200);
    expect((await call()).json.name).toBe('After');
  });

  it('makes a write with locked read models, answers within 2 s, and marks reads as pending', async () => {
    const before = await by.count();
    await locking(setFile(), async () => {
      const { ms, value } = await timed(() => put('Pending', { 'SVC-IDEMPOTENCY-KEY': 'k' }));
      expect([value.status, value.json.name]).toEqual([200, 'Pending']);
      expect(value.headers.get('svc-read-pending')).toBe('true');
      expect(ms).toBeGreaterThan(1_800);
      expect(ms).toBeLessThan(MAX_MS);
      expect(await by.count()).toBe(before + 1);
      expect((await call()).json.name).toBe('Acme');
    });
    await until(async () => (await call()).json.name === 'Pending');
    const again = await put('Pending', { 'SVC-IDEMPOTENCY-KEY': 'k' });
    expect(again.headers.get('svc-read-pending')).toBeNull();
    expect(await by.count()).toBe(before + 1);
  });

  it('answers a write that had to wait for the log within 2 s of its arrival, even with locked read models', async () => {
    await locking(setFile(), async () => {
      const log = open(logFile());
      log.exec('BEGIN IMMEDIATE');
      setTimeout(() => log.exec('ROLLBACK'), 1_000);
      const { ms, value } = await timed(() => put('Late'));
      log.close();
      expect([value.status, value.headers.get('svc-read-pending')]).toEqual([200, 'true']);
      expect(ms).toBeGreaterThan(1_000);
      expect(ms).toBeLessThan(MAX_MS);
    });
  });

  it('answers 503 to writes on a damaged event log, and still serves reads of tenants in memory', async () => {
    expect((await call()).status).toBe(200);
    const db = open(logFile());
    db.exec('ALTER TABLE events RENAME TO gone');
    db.close();
    expectProblem(await put('B'), 503, 'log_unavailable');
    expect((await call()).status).toBe(200);
    const back = open(logFile());
    back.exec('ALTER TABLE gone RENAME TO events');
    back.close();
    await until(async () => (await put('Back')).status === 200, 20_000, 'a write');
    expect((await call()).json.name).toBe('Back');
  });

  it('answers 503 to reads and writes of a tenant with a bad event in its stream, and serves the others', async () => {
    const last = (await by.events()).findLast((event) => event.stream === `tenant-${tenantId}`)!;
    const poison = anEvent();
    await by.log.append(`tenant-${tenantId}`, [poison], last.revision);
    const before = await by.count();
    const refused = await put('B');
    expectProblem(refused, 503, 'tenant_unreadable');
    expect(refused.headers.get('retry-after')).toBeNull();
    expectProblem(await call({ method: 'DELETE' }), 503, 'tenant_unreadable');
    await until(async () => (await call()).status === 503);
    const read = await call();
    expectProblem(read, 503, 'tenant_unreadable');
    expect(read.headers.get('retry-after')).toBeNull();
    expectProblem(await call({}, '/permissions'), 503, 'tenant_unreadable');
    expect(await by.count()).toBe(before);
    const other = await call({ key: service.key, method: 'PUT', body: { name: 'Fine' } });
    expect([other.status, other.headers.get('svc-read-pending')]).toEqual([200, null]);
    const health = () => ask(`${service.operationsUrl}/readyz`);
    await until(async () => (await health()).json.read_models.parked.length > 0);
    const { status, json } = await health();
    expect(status).toBe(200);
    const parked = { tenant_id: tenantId, event_id: poison.id };
    expect(json.read_models.parked).toMatchObject([{ ...parked, event_type: poison.type }]);
    expect(json.unreadable).toMatchObject([parked]);
  });
});
