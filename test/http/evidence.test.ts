import { openCheckpoint, readProof, type Checkpoint } from '../../src/evidence/note';
import { statementOf, type StatedEvent } from '../../src/evidence/statement';
import {
  appended,
  isConsistent,
  leafHash,
  rootByInclusion,
  rootOf,
  type Frontier,
  type Hash,
} from '../../src/evidence/tree';
import { beside, type Beside } from '../support/beside';
import { customerOf, idsOf, type Customer } from '../support/customers';
import { ask, rename, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { fact, reportFacts } from '../support/reported-facts';
import { startService, type Service } from '../support/service';
import { until } from '../support/waiting';

const EVIDENCE = '/tenants/self/evidence';
const CONSISTENCY = `${EVIDENCE}/consistency?from=`;

const leafOf = (tenantId: string, line: string): readonly [string, Hash] => {
  const event = JSON.parse(line) as StatedEvent & { readonly stream: string; readonly recorded_at: string };
  const kind = /activity-[0-9a-f-]{36}$/.test(event.stream) ? 'activity' : 'tenant';
  return [event.id, leafHash(statementOf(tenantId, kind, { ...event, recordedAt: event.recorded_at }))];
};

const rootsOf = (leaves: readonly Hash[]): readonly Hash[] => {
  let frontier: Frontier = [];
  const roots = leaves.map((leaf, size) => rootOf((frontier = appended(frontier, size, leaf).frontier)));
  return [rootOf([]), ...roots];
};

describe('evidence', () => {
  let service: Service;
  let by: Beside;
  let customer: Customer;
  const get = (path: string, more: AskOptions = {}) =>
    ask(`${service.url}${path}`, { key: customer.key, ...more });
  const text = async (path: string, more: AskOptions = {}): Promise<string> => {
    const { status, headers, text: body } = await get(path, more);
    expect([path, status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      path,
      200,
      'text/plain; charset=utf-8',
      'private, no-cache',
    ]);
    return body;
  };
  const opened = async (note: string, more?: AskOptions): Promise<Checkpoint> =>
    openCheckpoint(note, await text(`${EVIDENCE}/key`, more));
  const checkpoint = async (more?: AskOptions) => opened(await text(EVIDENCE, more), more);
  const consistency = async (from: number) => {
    const [head = '', note = ''] = (await text(`${CONSISTENCY}${from}`)).split(/\n\n(.*)/s);
    const [old, ...hashes] = head.split('\n');
    expect(old).toBe(`old ${from}`);
    return { hashes: hashes.map((hash) => Buffer.from(hash, 'base64')), newer: await opened(note) };
  };
  const leaves = async (size: number) =>
    (await get(`/events?limit=${size}`)).text
      .split('\n')
      .slice(0, size)
      .map((line) => leafOf(customer.tenantId, line));

  beforeAll(async () => {
    service = await startService({ DEMO: 'false' });
    by = await beside(service);
    customer = await customerOf(() => service, by);
    const nasty = { entityType: 'card', operation: 'x', message: '\u{1f600} "\u2028" \u0001', amount: 1e21 };
    await customer.report(
      ...Array.from({ length: 40 }, (_, i) => fact('TokenCreated', `token ${i}`)),
      fact('ActivityReported', 'one', { data: nasty, metadata: { client: { address: '10.0.0.1' } } }),
    );
    expect((await rename(service, customer.key, 'Renamed')).status).toBe(200);
  });

  it('is a checkpoint of all rows, which the events have made, signed by the key of the Tenant', async () => {
    await until(async () => {
      const { size } = await checkpoint();
      return (await customer.get()).json.pagination.total_items === size;
    });
    const { origin, size, root } = await checkpoint();
    expect(origin).toBe(`tenant-ledger/tenants/${customer.tenantId}`);
    expect(size).toBeGreaterThan(43);
    expect(rootsOf((await leaves(size)).map(([, leaf]) => leaf))[size]).toEqual(root);
  });

  it('is a proof for each event, by which its row is in the log', async () => {
    const { size } = await checkpoint();
    for (const [at, [id, leaf]] of (await leaves(size)).entries()) {
      const { index, hashes, checkpoint: note } = readProof(await text(`/events/${id}/proof`));
      const proven = await opened(note);
      expect([index, proven.size >= size]).toEqual([at, true]);
      expect(rootByInclusion(leaf, index, proven.size, hashes)).toEqual(proven.root);
      expect(rootByInclusion(leafHash('another'), index, proven.size, hashes)).not.toEqual(proven.root);
    }
    const id = String((await leaves(1))[0]?.[0]);
    expect(await text(`/events/${id.toUpperCase()}/proof`)).toBe(await text(`/events/${id}/proof`));
  });

  it('is a proof that the log begins with any earlier one, also after it has grown', async () => {
    const before = await checkpoint();
    await customer.report(fact('TokenRead', 'later'));
    const { newer } = await consistency(before.size);
    expect(newer.size).toBeGreaterThan(before.size);
    const roots = rootsOf((await leaves(newer.size)).map(([, leaf]) => leaf));
    expect(roots[before.size]).toEqual(before.root);
    for (const [from, root] of roots.entries()) {
      const { hashes, newer: now } = await consistency(from);
      expect([from, isConsistent({ size: from, root }, now, hashes)]).toEqual([from, true]);
      if (from === 0 || from === now.size) expect(hashes).toEqual([]);
      else expect(isConsistent({ size: from, root: leafHash('another') }, now, hashes)).toBe(false);
    }
    expect(await text(`${EVIDENCE}/consistency`)).toMatch(/^old 0\n\n/);
  });

  it.each(['1000000', '99999999999999999999', '-1', '1.5', 'all', ''])(
    'has no consistency from %j on',
    async (from) => {
      const refused = await get(`${CONSISTENCY}${from}`);
      expectProblem(refused, 400, 'validation_failed', 'from');
    },
  );

  it('is for HEAD what it is for GET, without the body', async () => {
    for (const path of [EVIDENCE, `${EVIDENCE}/key`, `${CONSISTENCY}1`]) {
      const { status, headers, text: body } = await get(path, { method: 'HEAD' });
      expect([status, headers.get('content-type'), body]).toEqual([200, 'text/plain; charset=utf-8', '']);
      expect(Number(headers.get('content-length'))).toBe(Buffer.byteLength(await text(path)));
    }
  });

  it('is of the own Tenant only, and of events that there are', async () => {
    const other = await customerOf(() => service, by);
    await other.report(fact('TokenRead', 'theirs'));
    const [theirs] = idsOf(await other.get());
    for (const id of [theirs, other.tenantId, 'x'])
      expectProblem(await get(`/events/${id}/proof`), 404, 'event_not_found');
    await until(async () => (await get(`/events/${theirs}/proof`, { key: other.key })).status === 200);
    const own = await text(EVIDENCE);
    await expect(opened(own, { key: other.key })).rejects.toThrow('The checkpoint is of');
    expect((await checkpoint({ key: other.key })).root).not.toEqual((await checkpoint()).root);
  });

  it('of a parked Tenant ends where the Tenant is shown, and says so', async () => {
    const parked = await customerOf(() => service, by);
    const recordedAt = '2091-01-01T00:00:05.000Z';
    const [bad] = await reportFacts(service.folder, parked.tenantId, [
      { type: 'TokenExploded', data: {}, recordedAt },
    ]);
    const ofParked = (path: string) => get(path, { key: parked.key });
    await until(async () => (await ofParked(EVIDENCE)).headers.has('svc-complete-until'));
    const { size } = await checkpoint({ key: parked.key });
    expect(size).toBe((await parked.get()).json.pagination.total_items);
    expectProblem(await ofParked(`/events/${bad}/proof`), 404, 'event_not_found');
    const later = await ofParked(`${CONSISTENCY}${size + 1}`);
    expect([later.status, later.json.code]).toEqual([503, 'read_models_unavailable']);
    expect([later.headers.get('retry-after'), later.headers.get('svc-complete-until')]).toEqual([
      '1',
      recordedAt,
    ]);
    expectProblem(await ofParked(`${CONSISTENCY}${size + 1_000}`), 400, 'validation_failed', 'from');
  });

  it('is signed by the same key after a restart, and by another one with another secret', async () => {
    const key = await text(`${EVIDENCE}/key`);
    const before = await text(EVIDENCE);
    await service.stop();
    service = await startService({ DEMO: 'false', DATA_DIR: service.folder });
    expect(await text(`${EVIDENCE}/key`)).toBe(key);
    const { size } = openCheckpoint(before, key);
    expect((await consistency(size)).newer.size).toBeGreaterThanOrEqual(size);
    const other = await startService({
      DATA_DIR: service.folder,
      SECRET: 'another secret of 32 characters.',
    });
    const changed = await ask(`${other.url}${EVIDENCE}/key`, { key: customer.key });
    expect(changed.text).not.toBe(key);
    expect(() => openCheckpoint(before, changed.text)).toThrow('was not signed by this key');
  });
});
