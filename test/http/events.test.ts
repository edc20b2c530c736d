import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addKey, revokeKey } from '../../src/domain/application-keys';
import { updateApplication } from '../../src/domain/applications';
import { deleteTenant } from '../../src/domain/tenant';
import { newKey } from '../../src/ledger/api-key';
import { besideForTests, type NewTenant } from '../support/beside';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import { following } from '../support/following';
import { ask, rename } from '../support/http';
import { expectProblem } from '../support/problem';
import { fact, reportFacts } from '../support/reported-facts';
import { serviceForTests, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

interface Event {
  readonly id: string;
  readonly type: string;
  readonly position: string;
  readonly recorded_at: string;
}

const linesOf = (text: string): readonly Record<string, never>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, never>);
const eventsIn = (text: string): readonly Event[] =>
  linesOf(text).filter((line) => 'id' in line) as unknown as readonly Event[];

describe('raw events over HTTP', () => {
  const service = serviceForTests();
  const by = besideForTests(service);
  let owner: NewTenant;
  let stranger: NewTenant;
  beforeAll(async () => {
    const permissions = ['log:read', 'tenant:read', 'tenant:update'];
    owner = await by.newTenant('Acme', permissions);
    stranger = await by.newTenant('Other', permissions);
    const headers = { 'SVC-TRACE-ID': 'trace-1' };
    expect((await rename(service, owner.key, 'Renamed', { headers })).status).toBe(200);
    await reportFacts(service.folder, owner.tenantId, [
      fact('TokenCreated', 'tok_1'),
      fact('TokenRead', 'tok_1'),
    ]);
  });

  const get = (query = '', key = owner.key, headers: Record<string, string> = {}) =>
    ask(`${service.url}/events${query}`, { key, headers });
  const own = async () => eventsOf(by.log.readTenant(owner.tenantId));

  it("are those of the caller's own tenant, complete and in order, with a trailer that anybody can check", async () => {
    const { status, headers, text } = await get();
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/x-ndjson');
    const stored = await own();
    expect(eventsIn(text).map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
    const lines = text.split('\n');
    const body = `${lines.slice(0, -2).join('\n')}\n`;
    expect(JSON.parse(lines.at(-2) ?? '')).toEqual({
      trailer: {
        log: await by.log.identity(),
        view: 'tenant',
        filter: { tenants: [owner.tenantId] },
        up_to: { tenant: stored.filter(({ stream }) => stream.includes('tenant-')).length - 1, activity: 1 },
        events: stored.length,
        sha256: createHash('sha256').update(body).digest('hex'),
      },
    });
    const updated = linesOf(text).find(({ type }) => type === 'TenantUpdated');
    expect(updated).toMatchObject({
      version: 1,
      stream: by.streams.tenant(owner.tenantId),
      trace_id: 'trace-1',
      actor: { type: 'application', id: owner.id },
      data: { name: 'Renamed' },
    });
    const added = linesOf(text).find(({ type }) => type === 'KeyAdded');
    expect(added?.['data']).toMatchObject({ digest_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(text).not.toContain('"digest"');
    expect(text).not.toContain(stranger.tenantId);
  });

  it('are CSV with changes, names, key, address, trace and source for those who prefer that', async () => {
    const csv = await get('', owner.key, { Accept: 'text/csv' });
    expect([csv.status, csv.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
    const [heading = '', ...rows] = csv.text.split('\r\n').slice(0, -1);
    expect(rows.map((row) => row.split(',')[0])).toEqual(eventsIn((await get()).text).map(({ id }) => id));
    const updated = rows.find((row) => row.includes(',TenantUpdated,')) ?? '';
    expect(updated).toMatch(/,"name: "".*"" → ""Renamed""",application,/);
    const cells = updated.replace(/"(?:[^"]|"")*"/, '').split(',');
    expect(Object.fromEntries(heading.split(',').map((name, i) => [name, cells[i]]))).toMatchObject({
      source: 'decision',
      operation: 'update',
      actor_id: owner.id,
      actor_name: expect.stringMatching(/./),
      key_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      client_addresses: '127.0.0.1',
      trace_id: 'trace-1',
    });
    expect(rows.find((row) => row.includes(',TokenCreated,'))).toContain(',fact,token,tok_1,create,');
    const followed = await get('?follow=true', owner.key, { Accept: 'text/csv' });
    expectProblem(followed, 400, 'validation_failed', 'follow');
  });

  it('state where the request came from, unless that is turned off', async () => {
    const put = (at: Service, userAgent: string) =>
      rename(at, stranger.key, 'Other', { headers: { 'User-Agent': userAgent } });
    const clientOfLast = async () =>
      (
        eventsIn((await get('?type=TenantUpdated', stranger.key)).text).at(-1) as unknown as {
          metadata: { client?: unknown };
        }
      ).metadata.client;
    await put(service, 'agent/1.0');
    expect(await clientOfLast()).toEqual({ address: '127.0.0.1', userAgent: 'agent/1.0' });
    await put(service, `${stranger.key} ${'x'.repeat(500)}`);
    const masked = (await clientOfLast()) as { userAgent: string };
    expect(masked.userAgent).toHaveLength(256 - stranger.key.length + 'key_***'.length);
    expect(masked.userAgent).not.toContain(stranger.key.slice(4));
    const silent = await startService({ DATA_DIR: service.folder, RECORD_CLIENTS: 'false' });
    await put(silent, 'agent/1.0');
    expect(await clientOfLast()).toBeUndefined();
    await silent.stop();
  });

  it('are not filtered by a type that does not exist', async () => {
    const { status, json } = await ask(`${service.url}/events?type=TenantUpdatet`, { key: owner.key });
    const text = 'is not known: did you mean TenantUpdated?';
    expect([status, json]).toEqual([400, expect.objectContaining({ errors: { type: [text] } })]);
  });

  it.each<[string, readonly string[]]>([
    ['?type=TenantUpdated', ['TenantUpdated']],
    ['?trace_id=trace-1', ['TenantUpdated']],
    ['?entity_type=token&entity_id=tok_1', ['TokenCreated', 'TokenRead']],
    ['?entity_type=Token&operation=read', ['TokenRead']],
    ['?operation=never', []],
    ['?start_date=2099-01-01', []],
    ['?source=fact', ['TokenCreated', 'TokenRead']],
    ['?source=decision&trace_id=trace-1', ['TenantUpdated']],
    ['?type=TokenCreated&limit=1', ['TokenCreated']],
  ])('are filtered by %s', async (query, types) => {
    expect(eventsIn((await get(query)).text).map(({ type }) => type)).toEqual(types);
  });

  it('carry their rows of the audit log, and what they changed', async () => {
    const rows = (await ask(`${service.url}/logs?size=100`, { key: owner.key })).json.data;
    const events = linesOf((await get()).text).slice(0, -1) as unknown as { log: unknown }[];
    expect(events.map(({ log }) => log)).toEqual(rows.toReversed());
    const changes = await Promise.all(
      ['TenantCreated', 'TenantUpdated', 'TokenCreated'].map(
        async (type) => linesOf((await get(`?type=${type}&limit=1`)).text)[0]?.['changes'],
      ),
    );
    expect(changes).toEqual([[], [{ field: 'name', from: expect.any(String), to: 'Renamed' }], []]);
  });

  it.each([
    ['text/event-stream, */*', 'text/event-stream'],
    ['application/x-ndjson;q=0.5, TEXT/event-stream', 'text/event-stream'],
    ['text/event-stream;q=0.5, application/x-ndjson', 'application/x-ndjson'],
    ['text/event-stream;q=0.1, */*', 'application/x-ndjson'],
    ['text/event-stream;q=0', 'application/x-ndjson'],
    ['*/*', 'application/x-ndjson'],
  ])('are sent to a client that accepts %s as %s', async (accept, type) => {
    const { status, headers } = await get('?limit=1', owner.key, { Accept: accept });
    expect([status, headers.get('content-type')?.split(';')[0]]).toEqual([200, type]);
    expect(headers.get('vary')).toMatch(/\bAccept(,|$)/);
  });

  it('are resumed after any position, without a gap or a repeat', async () => {
    const all = eventsIn((await get()).text);
    for (const [at, { position }] of all.entries()) {
      const rest = all.slice(at + 1).map(({ id }) => id);
      expect(eventsIn((await get(`?after=${position}`)).text).map(({ id }) => id)).toEqual(rest);
      const byHeader = await get('', owner.key, { 'Last-Event-ID': position });
      expect(eventsIn(byHeader.text).map(({ id }) => id)).toEqual(rest);
      // A browser reconnects to the same address, `after` included.
      const reconnected = await get(`?after=${all[0]?.position}`, owner.key, { 'Last-Event-ID': position });
      expect(eventsIn(reconnected.text).map(({ id }) => id)).toEqual(rest);
    }
  });

  it('have positions that name their stream and revision, and no others are accepted', async () => {
    for (const { position, revision, stream } of linesOf((await get()).text).filter((line) => 'id' in line))
      expect(position).toBe(`${/(tenant|activity)-/.exec(String(stream))?.[1]}:${revision}`);
    const wrong = ['tenant:999', 'tenant:-1', 'tenant:00', 'tenant:1e0', 'log:0', 'operator:0'];
    for (const position of [...wrong, '0000000000000001', 'tenant:9999999999999999', 'tenant', 'x'])
      for (const answer of [
        await get(`?after=${position}`),
        await get('', owner.key, { 'Last-Event-ID': position }),
      ]) {
        const field = 'after' in answer.json.errors ? 'after' : 'Last-Event-ID';
        expectProblem(answer, 400, 'validation_failed', field);
        expect(answer.json.errors[field][0]).toContain('for example tenant:12');
      }
    // A stranger's position is one of the caller's own events, or of none.
    expectProblem(await get('?after=activity:9', stranger.key), 400, 'validation_failed', 'after');
  });

  it('tell where an end by the limit was, and what was asked', async () => {
    const trailerOf = ({ text }: { text: string }) => linesOf(text).at(-1)?.['trailer'];
    expect(trailerOf(await get('?limit=2&operation=create&after=tenant:0'))).toMatchObject({
      filter: { tenants: [owner.tenantId], operation: 'create' },
      after: 'tenant:0',
      limit: 2,
      up_to: { tenant: 2 },
      events: 2,
    });
    expect(trailerOf(await get('?follow=true&limit=3'))).toMatchObject({ limit: 3, up_to: { tenant: 2 } });
  });

  describe('that were saved', () => {
    const saved = (text: string): string => {
      const file = join(freshFolder(), 'events.ndjson');
      writeFileSync(file, text);
      return file;
    };
    const check = (file: string) => by.run<{ unaltered: boolean }>('audit', 'check', file);

    it.each(['', '?operation=read', '?source=fact', '?after=tenant:0&limit=3', '?follow=true&limit=3'])(
      'with %s are confirmed by audit check',
      async (query) => {
        expect(await check(saved((await get(query)).text))).toMatchObject({ unaltered: true });
      },
    );

    it('as Server-Sent Events are the same lines after "data: "', async () => {
      const { text } = await get('', owner.key, { Accept: 'text/event-stream' });
      const data = text.split('\n').filter((line) => line.startsWith('data: '));
      const lines = data.map((line) => `${line.slice('data: '.length)}\n`).join('');
      expect(await check(saved(lines))).toMatchObject({ unaltered: true });
    });
  });

  it('do not show who the operator is on the own machine', async () => {
    const stored = (await own()).filter(({ metadata }) => JSON.stringify(metadata).includes('"osUser"'));
    expect(stored.length).toBeGreaterThan(0);
    const { text } = await get();
    expect(text).not.toContain('osUser');
    const [{ id } = { id: '' }] = stored;
    const { json } = await ask(`${service.url}/events/${id}`, { key: owner.key });
    expect(json.actor).toEqual({ type: 'user', id: expect.any(String) });
    expect(json.metadata.actor).toEqual(json.actor);
  });

  it('are sent as Server-Sent Events to clients that accept them', async () => {
    const { text, headers } = await get('?type=TenantUpdated', owner.key, { Accept: 'text/event-stream' });
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(text).toMatch(
      /^id: (\S+)\ndata: \{"id":.*"position":"\1".*\}\n\nevent: trailer\ndata: \{"trailer":.*\}\n\n$/,
    );
  });

  it.each([
    ['?typ=TenantUpdated', 'typ'],
    ['?limit=0', 'limit'],
    ['?follow=perhaps', 'follow'],
    ['?start_date=2022-01-02&end_date=2022-01-01', 'start_date'],
  ])('refuse %s', async (query, field) => {
    expectProblem(await get(query), 400, 'validation_failed', field);
  });

  it("are found by id, in the caller's own tenant only", async () => {
    const all = eventsIn((await get()).text);
    for (const event of all)
      expect((await ask(`${service.url}/events/${event.id}`, { key: owner.key })).json).toEqual(event);
    const { id } = all[0] ?? { id: '' };
    const elsewhere = await ask(`${service.url}/events/${id}`, { key: stranger.key });
    const nowhere = await ask(`${service.url}/events/7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11`, {
      key: stranger.key,
    });
    for (const response of [elsewhere, nowhere]) expectProblem(response, 404, 'event_not_found');
    const { trace_id: _, instance: __, ...body } = elsewhere.json;
    expect(nowhere.json).toMatchObject(body);
  });

  it('are found by id even while they park the tenant, and after they were set aside', async () => {
    const { tenantId, key } = await by.newTenant('Acme', ['log:read']);
    const [bad = ''] = await reportFacts(service.folder, tenantId, [{ type: 'TokenCreated', data: {} }]);
    const expectFound = async (): Promise<void> => {
      const { status, json } = await ask(`${service.url}/events/${bad}`, { key });
      expect({ status, id: json.id }).toEqual({ status: 200, id: bad });
    };
    const isParked = async () =>
      (await ask(`${service.url}/logs`, { key })).headers.has('svc-complete-until');
    await until(isParked);
    await expectFound();
    await by.run('projections', 'set-aside', bad, '--reason', 'It has no entity.');
    await reportFacts(service.folder, tenantId, [fact('TokenCreated', 'tok_after')]);
    const newest = () => ask(`${service.url}/logs?size=1`, { key });
    await until(async () => (await newest()).json.data?.[0].entity_id === 'tok_after');
    await expectFound();
  });

  describe('that are followed', () => {
    it('arrive as they happen, and resume where another stream stopped', async () => {
      const url = `${service.url}/events?follow=true&type=TokenUsed`;
      const first = await following(url, owner.key, { Accept: 'text/event-stream' });
      await reportFacts(service.folder, owner.tenantId, [fact('TokenUsed', 'a')]);
      await until(() => first.text().includes('"entityId":"a"'));
      await first.stop();
      await reportFacts(service.folder, owner.tenantId, [fact('TokenUsed', 'b')]);
      const [, last = ''] = [...first.text().matchAll(/^id: (.*)$/gm)].at(-1) ?? [];
      const second = await following(url, owner.key, { 'Last-Event-ID': last });
      await until(() => second.text().includes('"entityId":"b"'));
      await reportFacts(service.folder, stranger.tenantId, [fact('TokenUsed', 'c')]);
      await reportFacts(service.folder, owner.tenantId, [fact('TokenUsed', 'd')]);
      await until(() => second.text().includes('"entityId":"d"'));
      expect(eventsIn(second.text())).toHaveLength(2);
      await second.stop();
    });

    it.each([
      ['whose key is revoked', 'key_refused', ({ keyId }: NewTenant) => revokeKey(keyId)],
      [
        'whose key loses the permission',
        'permission_missing',
        ({ id }: NewTenant) => updateApplication(id, { permissions: ['tenant:read'] }),
      ],
      ['whose tenant is deleted', 'key_refused', () => deleteTenant()],
    ] as const)('and %s end, with the reason', async (_, reason, ending) => {
      const reader = await by.newTenant('Acme', ['log:read']);
      const stream = await following(`${service.url}/events?follow=true`, reader.key);
      await until(() => stream.text().includes('KeyAdded'));
      await by.write(reader.tenantId, ending(reader));
      await until(stream.isOver);
      expect(linesOf(stream.text()).at(-1)).toEqual({ end: { reason, position: expect.any(String) } });
    });

    it('end when the key expires, with the reason', async () => {
      const expiresAt = new Date(Date.now() + 2_000).toISOString();
      const { key, input } = newKey(owner.tenantId, { expiresAt });
      await by.write(owner.tenantId, addKey(owner.id, input));
      const stream = await following(`${service.url}/events?follow=true`, key);
      await until(stream.isOver);
      expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt));
      expect(linesOf(stream.text()).at(-1)).toEqual({
        end: { reason: 'key_refused', position: expect.any(String) },
      });
    });

    it('are at most twenty per tenant, and leave room for exports', async () => {
      const url = `${service.url}/events?follow=true&type=ReactorDeleted`;
      const open = await Promise.all(Array.from({ length: 20 }, () => following(url, owner.key)));
      expect(open.map(({ response }) => response.status)).toEqual(open.map(() => 200));
      expectProblem(await get('?follow=true'), 429, 'too_many_streams');
      expect((await get('')).status).toBe(200);
      expect((await get('', stranger.key)).status).toBe(200);
      await Promise.all(open.map(({ stop }) => stop()));
      await until(async () => {
        const again = await following(url, owner.key);
        await again.stop();
        return again.response.status === 200;
      });
    });
  });

  it('show the tenant as of a time, and after an event', async () => {
    const as = (moment: string) =>
      ask(`${service.url}/tenants/self?as_of=${encodeURIComponent(moment)}`, { key: owner.key });
    const all = eventsIn((await get()).text);
    const [created, updated] = [all[0], all.find(({ type }) => type === 'TenantUpdated')];
    expect((await as(created?.position ?? '')).json.name).not.toBe('Renamed');
    for (const then of [updated?.position, updated?.recorded_at])
      expect((await as(then ?? '')).json.name).toBe('Renamed');
    expect((await as('2099-01-01')).json).toEqual(
      (await ask(`${service.url}/tenants/self`, { key: owner.key })).json,
    );
    for (const wrong of ['tenant:999', 'soon'])
      expectProblem(await as(wrong), 400, 'validation_failed', 'as_of');
    const { key } = await by.newApplication(owner.tenantId, 'management', 'tenant:read');
    const without = await ask(`${service.url}/tenants/self?as_of=2099-01-01`, { key });
    expect([without.status, without.json.required_permission]).toEqual([403, 'log:read']);
  });
});
