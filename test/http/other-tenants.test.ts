import { randomUUID } from 'node:crypto';
import type { EventLog, LoggedEvent, NewEvent } from '../../src/event-log/event-log';
import type { Streams } from '../../src/event-log/streams';
import { beside } from '../support/beside';
import { anEvent, eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import { following } from '../support/following';
import { ask, rename, type ApiResponse, type AskOptions } from '../support/http';
import { openLogIn } from '../support/profile';
import { fact, reportFacts } from '../support/reported-facts';
import { allProjected, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

const SECRET = 'the same secret for both services';
const PERMISSIONS = ['log:read', 'tenant:read', 'tenant:update', 'application:read', 'report:read'];

/** Facts of other tenants between two events of this one: 3,000 altogether, so that positions grow by a digit. */
const OTHERS = 100;

const othersOf = (): readonly NewEvent[] =>
  Array.from({ length: OTHERS }, (_, i) => anEvent({ entityId: `tok_${i}` }, { type: 'TokenCreated' }));

const unchanged = ({ id, type, data, metadata, recordedAt }: LoggedEvent): NewEvent => ({
  id,
  type,
  data: data as NewEvent['data'],
  metadata: metadata as NewEvent['metadata'],
  recordedAt,
});

/** Appends the same events to another log, with many of other tenants before and between them. */
const copyAmongOthers = async (events: readonly LoggedEvent[], from: Streams, folder: string) => {
  const { log, streams } = await openLogIn(folder);
  const appendOthers = (): Promise<unknown> =>
    log.append(streams.activity(randomUUID()), othersOf(), 'no_stream', 20_000);
  await appendOthers();
  for (const event of events) {
    const stream = `${streams.prefix}${event.stream.slice(from.prefix.length)}`;
    const expected = event.revision === 0 ? 'no_stream' : event.revision - 1;
    await log.append(stream, [unchanged(event)], expected, 20_000);
    await appendOthers();
  }
  await log.close();
};

/** What differs in any two answers: the time, the trace id, the port, and the identity of a log. */
const comparable = (
  { status, headers, text }: ApiResponse,
  { url, identity }: { url: string; identity: string },
) => ({
  status,
  headers: [...headers].filter(([name]) => !/^(date|svc-trace-id|content-length|connection)$/.test(name)),
  text: text
    .replaceAll(identity, 'LOG')
    .replaceAll(url, 'URL')
    .replaceAll(/"trace_id":"[0-9a-f-]{32,}"/g, 'TRACE')
    .replaceAll(/"(modified|recorded|stored|last_used)_at":"[^"]*"/g, 'TIME'),
});

/** Every route that shows a position, a cursor or a tag, each position and cursor followed as far as it goes. */
const everyAnswer = async (url: string, key: string): Promise<ReadonlyMap<string, ApiResponse>> => {
  const answers = new Map<string, ApiResponse>();
  const get = async (path: string, options: AskOptions = {}, name = path): Promise<ApiResponse> => {
    const answer = await ask(`${url}${path}`, { key, ...options });
    answers.set(name, answer);
    return answer;
  };
  const walk = async (path: string): Promise<void> => {
    for (let start = ''; ;) {
      const { json } = await get(`${path}${start === '' ? '' : `&start=${start}`}`);
      start = json.pagination?.next ?? '';
      if (start === '') return;
    }
  };
  const sse = { headers: { Accept: 'text/event-stream' } };
  const { text } = await get('/events');
  await get('/events', sse, 'SSE /events');
  const events = text
    .split('\n')
    .filter((line) => line.startsWith('{"id"'))
    .map((line) => JSON.parse(line) as { id: string; position: string; type: string });
  for (const { id, position } of events) {
    await get(`/events?after=${encodeURIComponent(position)}`);
    await get('/events', { headers: { 'Last-Event-ID': position } }, `/events Last-Event-ID ${position}`);
    await get(`/events?limit=1&after=${encodeURIComponent(position)}`, sse);
    await get(`/events/${id}`);
    await get(`/tenants/self?as_of=${encodeURIComponent(position)}`);
    await get(`/applications?as_of=${encodeURIComponent(position)}`);
  }
  for (const query of ['limit=2', 'follow=true&limit=3', 'type=TokenRead', 'operation=read&limit=2'])
    await get(`/events?${query}`);
  for (const path of ['/events?after=', '/tenants/self?as_of=', '/applications?as_of='])
    for (const position of ['tenant:9999', 'activity:9999', '0000000000000001', 'MDAwMDE.c2lnbmVk', 'x'])
      await get(`${path}${position}`);
  await get('/events/7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11');
  for (const filter of ['', '&entity_type=token', '&entity_id=tok_1', '&operation=read', '&trace_id=t'])
    await walk(`/logs?size=3${filter}`);
  await walk(`/logs?size=1&entity_type=token&operation=read`);
  await walk('/applications?size=1');
  for (const path of ['/tenants/self', '/tenants/self/reports/usage', '/logs/entity-types', '/docs'])
    await get(path);
  await get('/openapi.json');
  return answers;
};

const ended = async (service: Service, key: string): Promise<string> => {
  const stream = await following(`${service.url}/events?follow=true`, key);
  await until(() => stream.text().includes('tok_last'));
  expect(await service.stop()).toBe(0);
  await stream.reading;
  return stream.text();
};

describe('what a tenant sees while others write', () => {
  let quiet: Service;
  let busy: Service;
  let key: string;
  let identities: readonly [string, string];

  beforeAll(async () => {
    quiet = await startService({ SECRET, DEMO: 'false' });
    const by = await beside(quiet);
    const { tenantId, ...reader } = await by.newTenant('Acme', PERMISSIONS);
    ({ key } = reader);
    await by.newApplication(tenantId, 'private');
    const report = (...names: readonly string[]) =>
      reportFacts(
        quiet.folder,
        tenantId,
        names.map((name) => fact('TokenRead', name, { metadata: { traceId: 't' } })),
      );
    await report('tok_1', 'tok_2');
    for (const name of ['First', 'Second', 'Third']) {
      expect((await rename(quiet, key, name)).status).toBe(200);
      await report('tok_1', `tok_${name}`);
    }
    await report(...Array.from({ length: 12 }, (_, i) => `tok_${i}`), 'tok_last');
    await allProjected(quiet);
    const folder = freshFolder();
    await copyAmongOthers(await eventsOf(by.log.readTenant(tenantId)), by.streams, folder);
    busy = await startService({ SECRET, DEMO: 'false', DATA_DIR: folder });
    await allProjected(busy);
    const identityOf = async ({ folder: of }: Service): Promise<string> => {
      const { log }: { log: EventLog } = await openLogIn(of);
      const identity = await log.identity();
      await log.close();
      return identity;
    };
    identities = [await identityOf(quiet), await identityOf(busy)];
  }, 60_000);

  it('is the same, byte by byte, in a log with thousands of their events', async () => {
    const [alone, among] = [await everyAnswer(quiet.url, key), await everyAnswer(busy.url, key)];
    expect([...among.keys()]).toEqual([...alone.keys()]);
    expect(alone.size).toBeGreaterThan(150);
    for (const [name, answer] of alone)
      expect({
        name,
        ...comparable(among.get(name) as ApiResponse, { url: busy.url, identity: identities[1] }),
      }).toEqual({ name, ...comparable(answer, { url: quiet.url, identity: identities[0] }) });
  });

  it('is the same after a write, and at the end of a stream that is cut', async () => {
    const [alone, among] = [await rename(quiet, key, 'Fourth'), await rename(busy, key, 'Fourth')];
    expect(comparable(among, { url: busy.url, identity: identities[1] })).toEqual(
      comparable(alone, { url: quiet.url, identity: identities[0] }),
    );
    const [one, other] = [await ended(quiet, key), await ended(busy, key)];
    expect(other.split('\n').at(-2)).toMatch(/^\{"end":\{"reason":"shutting_down","position":".*"\}\}$/);
    expect(other.split('\n').at(-2)).toBe(one.split('\n').at(-2));
  });
});
