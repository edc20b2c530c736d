import { createHash } from 'node:crypto';
import { newKey } from '../../src/ledger/new-key';
import { deleteTenant } from '../../src/domain/tenant';
import { addKey, revokeKey } from '../../src/domain/application-keys';
import { updateApplication } from '../../src/domain/applications';
import { MAX_STREAMS_PER_TENANT } from '../../src/audit/open-streams';
import { beside, type Beside } from '../support/beside';
import { eventsOf } from '../support/events';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { fact, reportFacts } from '../support/reported-facts';
import { startService, type Service } from '../support/service';
import { until } from '../support/waiting';

type Owner = Awaited<ReturnType<Beside['newApplication']>> & { readonly tenantId: string };

interface Event {
  readonly id: string;
  readonly type: string;
  readonly position: string;
}

const linesOf = (text: string): readonly Record<string, never>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, never>);
const eventsIn = (text: string): readonly Event[] =>
  linesOf(text).filter((line) => 'id' in line) as unknown as readonly Event[];

/** A stream that stays open, and the events received so far. */
const following = async (url: string, key: string, headers: Record<string, string> = {}) => {
  const stop = new AbortController();
  const response = await fetch(url, { headers: { 'SVC-API-KEY': key, ...headers }, signal: stop.signal });
  let text = '';
  let isOver = false;
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>)
      text += decoder.decode(chunk, { stream: true });
  })()
    .catch(() => undefined)
    .finally(() => (isOver = true));
  return {
    response,
    text: () => text,
    isOver: () => isOver,
    stop: async () => {
      stop.abort();
      await reading;
    },
    reading,
  };
};

describe('raw events over HTTP', () => {
  let service: Service;
  let by: Beside;
  let owner: Owner;
  let stranger: Owner;
  beforeAll(async () => {
    service = await startService();
    by = await beside(service);
    const newOwner = async (): Promise<Owner> => {
      const { tenantId } = await by.newTenant();
      return {
        tenantId,
        ...(await by.newApplication(tenantId, 'management', 'log:read', 'tenant:read', 'tenant:update')),
      };
    };
    [owner, stranger] = [await newOwner(), await newOwner()];
    const put = await ask(`${service.url}/tenants/self`, {
      method: 'PUT',
      key: owner.key,
      body: { name: 'Renamed' },
      headers: { 'SVC-TRACE-ID': 'trace-1' },
    });
    expect(put.status).toBe(200);
    await reportFacts(service.folder, owner.tenantId, [
      fact('TokenCreated', 'tok_1'),
      fact('TokenRead', 'tok_1'),
    ]);
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
    // Readers that disconnect are not an error.
    expect(service.stderr()).not.toContain('"level":50');
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
        events: stored.length,
        first_position: eventsIn(text)[0]?.position,
        last_position: eventsIn(text).at(-1)?.position,
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
    expect(text).not.toMatch(/"digest":"[0-9a-f]{9}/);
    expect(text).not.toContain(stranger.tenantId);
  });

  it('state where the request came from, unless that is turned off', async () => {
    const put = (url: string, userAgent: string) =>
      ask(`${url}/tenants/self`, {
        method: 'PUT',
        key: stranger.key,
        body: { name: 'Other' },
        headers: { 'User-Agent': userAgent },
      });
    const clientOfLast = async () =>
      (
        eventsIn((await get('?type=TenantUpdated', stranger.key)).text).at(-1) as unknown as {
          metadata: { client?: unknown };
        }
      ).metadata.client;
    await put(service.url, 'agent/1.0');
    expect(await clientOfLast()).toEqual({ address: '127.0.0.1', userAgent: 'agent/1.0' });
    await put(service.url, `${stranger.key} ${'x'.repeat(500)}`);
    const masked = (await clientOfLast()) as { userAgent: string };
    expect(masked.userAgent).toHaveLength(256 - stranger.key.length + 'key_***'.length);
    expect(masked.userAgent).not.toContain(stranger.key.slice(4));
    const silent = await startService({ DATA_DIR: service.folder, RECORD_CLIENTS: 'false' });
    await put(silent.url, 'agent/1.0');
    expect(await clientOfLast()).toBeUndefined();
    await silent.stop();
  });

  const filters: readonly (readonly [string, readonly string[]])[] = [
    ['?type=TenantUpdated', ['TenantUpdated']],
    ['?trace_id=trace-1', ['TenantUpdated']],
    ['?operation=read', ['TokenRead']],
    ['?entity_type=token&entity_id=tok_1', ['TokenCreated', 'TokenRead']],
    ['?start_date=2099-01-01', []],
    ['?type=TokenCreated&limit=1', ['TokenCreated']],
  ];
  it.each(filters)('are filtered by %s', async (query, types) => {
    expect(eventsIn((await get(query)).text).map(({ type }) => type)).toEqual(types);
  });

  it('are resumed after any position, without a gap or a repeat', async () => {
    const all = eventsIn((await get()).text);
    for (const [at, { position }] of all.entries()) {
      const rest = all.slice(at + 1).map(({ id }) => id);
      expect(eventsIn((await get(`?after=${position}`)).text).map(({ id }) => id)).toEqual(rest);
      const byHeader = await get('', owner.key, { 'Last-Event-ID': position });
      expect(eventsIn(byHeader.text).map(({ id }) => id)).toEqual(rest);
    }
    const [{ position } = { position: '' }] = all;
    const refused = { status: 400, code: 'validation_failed', fields: ['after'] };
    expectProblem(await get(`?after=${position}`, stranger.key), refused);
    expectProblem(await get(`?after=${position.replace(/.$/, '_')}`), refused);
    expectProblem(await get('?after=0000000000000001'), refused);
  });

  it('are sent as Server-Sent Events to clients that accept them', async () => {
    const { text, headers } = await get('?type=TenantUpdated', owner.key, { Accept: 'text/event-stream' });
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(text).toMatch(
      /^id: (\S+)\ndata: \{"id":.*"position":"\1".*\}\n\nevent: trailer\ndata: \{"trailer":.*\}\n\n$/,
    );
  });

  const misuse: readonly (readonly [string, string])[] = [
    ['?typ=TenantUpdated', 'typ'],
    ['?limit=0', 'limit'],
    ['?follow=perhaps', 'follow'],
    ['?entity_id=tok_1', 'entity_type'],
    ['?start_date=2022-01-02&end_date=2022-01-01', 'start_date'],
  ];
  it.each(misuse)('refuse %s', async (query, field) => {
    expectProblem(await get(query), { status: 400, code: 'validation_failed', fields: [field] });
  });

  it('require a permission', async () => {
    const { key } = await by.newApplication(owner.tenantId, 'management', 'tenant:read');
    expectProblem(await get('', key), {
      status: 403,
      code: 'permission_missing',
      more: ['required_permission', 'application_type', 'assignable'],
    });
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
    for (const response of [elsewhere, nowhere])
      expectProblem(response, { status: 404, code: 'event_not_found' });
    const { trace_id: _, instance: __, ...body } = elsewhere.json;
    expect(nowhere.json).toMatchObject(body);
  });

  it('are found by id even while they park the tenant, and after they were set aside', async () => {
    const { tenantId } = await by.newTenant();
    const { key } = await by.newApplication(tenantId, 'management', 'log:read');
    const [bad = ''] = await reportFacts(service.folder, tenantId, [{ type: 'TokenCreated', data: {} }]);
    const expectFound = async (): Promise<void> => {
      const { status, json } = await ask(`${service.url}/events/${bad}`, { key });
      expect({ status, id: json.id }).toEqual({ status: 200, id: bad });
      const shown = await by.run<{ unreadable: string; event: Event }>('audit', 'show', bad);
      expect(shown).toMatchObject({ unreadable: expect.stringContaining('entityId'), event: { id: bad } });
    };
    const parked = () => by.run<readonly { event_id: string }[]>('projections', 'parked');
    await until(async () => (await parked()).some(({ event_id }) => event_id === bad));
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

    const endings = [
      ['whose key is revoked', 'key_refused', ({ keyId }: Owner) => revokeKey(keyId)],
      [
        'whose key loses the permission',
        'permission_missing',
        ({ id }: Owner) => updateApplication(id, { permissions: ['tenant:read'] }),
      ],
      ['whose tenant is deleted', 'key_refused', () => deleteTenant()],
    ] as const;
    it.each(endings)('and %s end within a second, with the reason', async (_, reason, ending) => {
      const { tenantId } = await by.newTenant();
      const application = { tenantId, ...(await by.newApplication(tenantId, 'management', 'log:read')) };
      const stream = await following(`${service.url}/events?follow=true`, application.key);
      await until(() => stream.text().includes('KeyAdded'));
      await by.write(tenantId, ending(application));
      const startedAt = performance.now();
      await until(stream.isOver);
      expect(performance.now() - startedAt).toBeLessThan(1_500);
      expect(linesOf(stream.text()).at(-1)).toEqual({ end: { reason, position: expect.any(String) } });
    });

    it('end within a second when the key expires, with the reason', async () => {
      const expiresAt = new Date(Date.now() + 2_000).toISOString();
      const { key, input } = newKey(owner.tenantId, { expiresAt });
      await by.write(owner.tenantId, addKey(owner.id, input));
      const stream = await following(`${service.url}/events?follow=true`, key);
      await until(stream.isOver);
      expect(Date.now() - Date.parse(expiresAt)).toBeLessThan(1_500);
      expect(linesOf(stream.text()).at(-1)).toEqual({
        end: { reason: 'key_refused', position: expect.any(String) },
      });
    });

    it('are limited in the number of streams per tenant', async () => {
      const url = `${service.url}/events?follow=true&type=Nothing`;
      const open = await Promise.all(
        Array.from({ length: MAX_STREAMS_PER_TENANT }, () => following(url, owner.key)),
      );
      expect(open.map(({ response }) => response.status)).toEqual(open.map(() => 200));
      expectProblem(await get('?follow=true'), { status: 429, code: 'too_many_streams' });
      expect((await get('', stranger.key)).status).toBe(200);
      await Promise.all(open.map(({ stop }) => stop()));
      await until(async () => (await get('?limit=1')).status === 200);
    });

    it('end when the service stops, and can be resumed', async () => {
      const another = await startService({ DATA_DIR: service.folder });
      const stream = await following(`${another.url}/events?follow=true`, owner.key);
      await until(() => stream.text().includes('TenantCreated'));
      const startedAt = performance.now();
      expect(await another.stop()).toBe(0);
      expect(performance.now() - startedAt).toBeLessThan(5_000);
      await stream.reading;
      expect(linesOf(stream.text()).at(-1)).toEqual({
        end: { reason: 'shutting_down', position: expect.any(String) },
      });
    });
  });

  it('show the tenant as of a time, and after an event', async () => {
    const as = (moment: string) =>
      ask(`${service.url}/tenants/self?as_of=${encodeURIComponent(moment)}`, { key: owner.key });
    const all = eventsIn((await get()).text);
    const [created, updated] = [all[0], all.find(({ type }) => type === 'TenantUpdated')];
    expect((await as(created?.position ?? '')).json.name).not.toBe('Renamed');
    expect((await as(updated?.position ?? '')).json.name).toBe('Renamed');
    expect((await as('2099-01-01')).json).toEqual(
      (await ask(`${service.url}/tenants/self`, { key: owner.key })).json,
    );
    const foreign = eventsIn((await get('', stranger.key)).text)[0]?.position ?? '';
    expectProblem(await as(foreign), { status: 400, code: 'validation_failed', fields: ['as_of'] });
    expectProblem(await as('soon'), { status: 400, code: 'validation_failed', fields: ['as_of'] });
    const { key } = await by.newApplication(owner.tenantId, 'management', 'tenant:read');
    const without = await ask(`${service.url}/tenants/self?as_of=2099-01-01`, { key });
    expect([without.status, without.json.required_permission]).toEqual([403, 'log:read']);
  });
});
