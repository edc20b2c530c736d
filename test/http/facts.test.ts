import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { revokeServiceKey } from '../../src/domain/services';
import { deleteTenant } from '../../src/domain/tenant';
import { appendToEnd } from '../../src/event-log/event-log';
import { makeServiceKey } from '../../src/ledger/api-key';
import { TIMES } from '../../src/times';
import { beside, besideForTests } from '../support/beside';
import { customerOf, type Customer } from '../support/customers';
import { anEvent, eventsOf } from '../support/events';
import { aFact, textOf, type Fact } from '../support/facts';
import { ask, type ApiResponse } from '../support/http';
import { expectProblem } from '../support/problem';
import { newService } from '../support/services';
import { loggedBy, serviceForTests, startService } from '../support/service';
import { until } from '../support/waiting';

const NDJSON = 'application/x-ndjson';

describe('POST /facts', () => {
  const service = serviceForTests({}, { ...TIMES, keyUsesMs: 10 });
  const by = besideForTests(service);
  let customer: Customer;
  let gateway: Awaited<ReturnType<typeof newService>>;
  beforeAll(async () => {
    gateway = await newService(by, 'facts');
    customer = await customerOf(() => service, by);
  });

  const send = (body: string | Buffer, headers: Readonly<Record<string, string>> = {}, key = gateway.key) =>
    ask(`${service.url}/facts`, {
      method: 'POST',
      key,
      headers: { 'Content-Type': NDJSON, ...headers },
      body,
    });
  const report = (...facts: readonly (Fact | string)[]) => send(textOf(facts));
  const asJson = (body: unknown) => ask(`${service.url}/facts`, { method: 'POST', key: gateway.key, body });
  const totals = ({ status, text: body, json }: ApiResponse) => {
    if (status !== 200) throw new Error(body);
    return [json.accepted, json.already_there, json.refused.length];
  };
  const reported = async (tenantId = customer.tenantId) =>
    (await eventsOf(by.log.readStream(by.streams.activity(tenantId)))).filter(
      ({ type }) => type !== 'KeyUsed',
    );

  const refusal = (line: number, { id }: Fact, code: string, reason: string, retry = false) => {
    return { line, id, code, reason, retry };
  };

  it('takes lines, each once, and shows them at once', async () => {
    const facts = [aFact(customer.tenantId), aFact(customer.tenantId, { type: 'CardUsed' })];
    const first = await report(facts[0]!, 'nonsense', '', facts[1]!, facts[0]!, { ...facts[1]!, type: 'X' });
    expect([first.status, first.json]).toEqual([
      200,
      {
        accepted: 2,
        already_there: 1,
        refused: [
          { line: 2, code: 'invalid', reason: 'it is not JSON', retry: false },
          refusal(6, facts[1]!, 'invalid', '"type" is not a known fact: "X"'),
        ],
      },
    ]);
    expect(first.headers.get('svc-read-pending')).toBeNull();
    const rows = (await customer.get('?entity_id=tok_1')).json.data as { id: string }[];
    expect(rows.map(({ id }) => id)).toEqual([facts[1]!.id, facts[0]!.id]);
    expect(totals(await report(...facts))).toEqual([0, 2, 0]);
    expect((await reported()).filter(({ id }) => id === facts[0]!.id)).toHaveLength(1);
  });

  it('takes one fact or an array as JSON', async () => {
    const facts = [aFact(customer.tenantId), aFact(customer.tenantId)];
    expect(totals(await asJson(facts[0]))).toEqual([1, 0, 0]);
    const many = await asJson([facts[0], 5, facts[1]]);
    expect(totals(many)).toEqual([1, 1, 1]);
    expect(many.json.refused).toMatchObject([{ line: 2, reason: 'it must be one JSON object' }]);
    expect(totals(await asJson([]))).toEqual([0, 0, 0]);
    for (const body of ['5', 'null', '"x"']) expect((await asJson(body)).status).toBe(400);
    expect((await asJson('{"__proto__": 1}')).status).toBe(400);
  });

  it('keeps who reported it, the key that it was done with, and nothing else of the request', async () => {
    const [keyId, trace_id] = [randomUUID(), 'own-trace'];
    const fact = { ...aFact(customer.tenantId), key_id: keyId, trace_id };
    const plain = aFact(customer.tenantId);
    const headers = { 'SVC-TRACE-ID': 'of-the-request', 'Idempotency-Key': 'ignored', 'User-Agent': 'x' };
    expect(totals(await send(textOf([fact, plain]), headers))).toEqual([2, 0, 0]);
    expect(totals(await send(textOf([aFact(customer.tenantId)]), headers))).toEqual([1, 0, 0]);
    const events = await reported();
    const ofService = { at: expect.any(String), version: 1, service: { id: gateway.id, name: 'Gateway' } };
    expect(events.find(({ id }) => id === fact.id)?.metadata).toEqual({
      ...ofService,
      keyId,
      traceId: trace_id,
    });
    expect(events.find(({ id }) => id === plain.id)?.metadata).toEqual(ofService);
    const shown = await ask(`${service.url}/events?key_id=${keyId}`, { key: customer.key });
    expect(JSON.parse(shown.text.split('\n')[0]!)).toMatchObject({ id: fact.id, key_id: keyId });
  });

  it('refuses what is about no tenant, or a deleted one, and nothing else', async () => {
    const { tenantId: deleted } = await by.newTenant();
    await by.write(deleted, deleteTenant());
    const unknown = randomUUID();
    const facts = [aFact(unknown), aFact(customer.tenantId), aFact(deleted)];
    const { json } = await report(...facts);
    expect([json.accepted, json.refused]).toEqual([
      1,
      [
        refusal(1, facts[0]!, 'unknown_tenant', `tenant ${unknown} is unknown`),
        refusal(3, facts[2]!, 'deleted_tenant', `tenant ${deleted} is deleted`),
      ],
    ]);
    expect(await reported(unknown)).toEqual([]);
  });

  it('refuses only the lines of a tenant that cannot be read, to be sent again', async () => {
    const { tenantId: broken } = await by.newTenant();
    await appendToEnd(by.log, by.streams.tenant(broken), [anEvent()]);
    const facts = [aFact(broken), aFact(customer.tenantId)];
    const { json } = await report(...facts);
    const reason = `tenant ${broken} cannot take facts now: send them again`;
    const again = refusal(1, facts[0]!, 'tenant_unavailable', reason, true);
    expect([json.accepted, json.refused]).toEqual([1, [again]]);
    const alone = await report(facts[0]!);
    expect([alone.status, alone.json.refused.length]).toEqual([200, 1]);
  });

  it('answers READ-PENDING for a tenant that is parked', async () => {
    const parked = await customerOf(() => service, by);
    await appendToEnd(by.log, by.streams.activity(parked.tenantId), [anEvent()]);
    const fact = aFact(parked.tenantId);
    const first = await report(fact, aFact(customer.tenantId));
    expect([...totals(first), first.headers.get('svc-read-pending')]).toEqual([2, 0, 0, 'true']);
    expect(totals(await report(fact))).toEqual([0, 1, 0]);
    expect((await reported(parked.tenantId)).filter(({ id }) => id === fact.id)).toHaveLength(1);
  });

  it('counts an id once, whoever sends it at the same time', async () => {
    const facts = Array.from({ length: 20 }, () => aFact(customer.tenantId));
    const sent = await Promise.all([report(...facts), report(...facts), report(...facts.toReversed())]);
    const [accepted, alreadyThere] = sent.map(totals).reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0]);
    // An event store answers a repeated append as it did the first time.
    expect(accepted).toBeGreaterThanOrEqual(20);
    expect(accepted + alreadyThere).toBe(60);
    const ids = new Set(facts.map(({ id }) => id));
    expect((await reported()).filter(({ id }) => ids.has(id))).toHaveLength(20);
  });

  it('takes at most 1,000 facts, 1 MiB of lines and 64 KiB of JSON', async () => {
    const facts = Array.from({ length: 1_001 }, () => aFact(customer.tenantId));
    const before = (await reported()).length;
    expectProblem(await report(...facts), 413, 'body_too_large');
    expectProblem(await send(' '.repeat(1_048_577)), 413, 'body_too_large');
    expectProblem(
      await send(gzipSync(' '.repeat(1_048_577)), { 'Content-Encoding': 'gzip' }),
      413,
      'body_too_large',
    );
    expectProblem(await asJson(facts.slice(0, 600)), 413, 'body_too_large');
    expect((await reported()).length).toBe(before);
    // As a service does: on a busy machine it may take more than one request.
    const isTaken = async () => (await report(...facts.slice(1), '', '')).json.refused?.length === 0;
    await until(isTaken);
    const ids = new Set(facts.slice(1).map(({ id }) => id));
    expect((await reported()).filter(({ id }) => ids.has(id))).toHaveLength(1_000);
    const zipped = await send(gzipSync(textOf(facts.slice(0, 2))), { 'Content-Encoding': 'gzip' });
    expect(totals(zipped)).toEqual([1, 1, 0]);
  });

  it('refuses what is not lines, line by line where that is possible', async () => {
    const bytes = Buffer.concat([Buffer.from(textOf([aFact(customer.tenantId)])), Buffer.from([0xff, 0x0a])]);
    expect((await send(bytes)).json).toMatchObject({
      accepted: 1,
      refused: [{ line: 2, code: 'invalid', reason: 'it is not UTF-8', retry: false }],
    });
    const wrong = await send('x', { 'Content-Type': 'text/plain' });
    expectProblem(wrong, 415, 'unsupported_media_type');
    expect(wrong.json.detail).toContain(NDJSON);
    expect(totals(await send(''))).toEqual([0, 0, 0]);
    const query = await ask(`${service.url}/facts?dry=1`, { method: 'POST', key: gateway.key, body: [] });
    expectProblem(query, 400, 'validation_failed', 'dry');
  });

  it('is for valid keys of services that may report facts', async () => {
    const verifier = await newService(by, 'verify');
    const body = textOf([aFact(customer.tenantId)]);
    expectProblem(await send(body, {}, verifier.key), 403, 'service_only');
    expectProblem(await send(body, {}, customer.key), 403, 'service_only');
    for (const key of [makeServiceKey(), gateway.key.slice(0, -1), 'svc_'])
      expectProblem(await send(body, {}, key), 401, 'key_refused');
    const refusals = () => by.events().then((all) => all.filter(({ type }) => type === 'KeyUsed'));
    const isRecorded = async () =>
      JSON.stringify(await refusals()).includes('"missingPermissions":["service:facts"]');
    await until(isRecorded);
    const other = await newService(by, 'facts');
    expect((await send(body, {}, other.key)).status).toBe(200);
    await other.execute(revokeServiceKey(other.keyId));
    await until(async () => (await send(body, {}, other.key)).status === 401, 1_000);
    expect(service.stderr()).not.toContain(gateway.key);
  });

  it('takes four requests of a service at a time', async () => {
    const { hostname, port } = new URL(service.url);
    const body = textOf([aFact(customer.tenantId)]);
    const begun = Array.from({ length: 5 }, () => {
      const headers = { 'SVC-API-KEY': gateway.key, 'Content-Type': NDJSON, 'Content-Length': body.length };
      const sent = request({ hostname, port, path: '/facts', method: 'POST', headers });
      sent.write(body.slice(0, 10));
      return { sent, answered: once(sent, 'response').then(([response]) => response as IncomingMessage) };
    });
    const busy = await Promise.race(begun.map(({ answered }) => answered));
    expect([busy.statusCode, busy.headers['retry-after']]).toEqual([503, '1']);
    expect(await text(busy)).toContain('"code":"service_busy"');
    const other = await newService(by, 'facts');
    expect((await send(body, {}, other.key)).status).toBe(200);
    for (const { sent } of begun) sent.end(body.slice(10));
    const statuses = begun.map(async ({ answered }) => (await answered).resume().statusCode);
    expect((await Promise.all(statuses)).filter((status) => status === 200)).toHaveLength(4);
    expect((await send(body)).status).toBe(200);
  });

  it('is logged with the service and its key', async () => {
    expect(totals(await report(aFact(customer.tenantId)))).toEqual([1, 0, 0]);
    await until(() => loggedBy(service, '"/facts"').some(({ service_id }) => service_id === gateway.id));
    expect(loggedBy(service, '"/facts"')[0]).toMatchObject({ service_id: gateway.id, key_id: gateway.keyId });
  });

  it('is not answered while services cannot be read, and everything else is', async () => {
    const own = await startService();
    const there = await beside(own);
    const made = await newService(there, 'facts');
    const { key, tenantId } = await there.newTenant();
    const sendThere = () => ask(`${own.url}/facts`, { method: 'POST', key: made.key, body: aFact(tenantId) });
    expect((await sendThere()).status).toBe(200);
    await appendToEnd(there.log, there.streams.operator(), [anEvent({}, { type: 'ServiceParked' })]);
    await until(async () => (await sendThere()).status === 503, 1_000);
    const refused = await sendThere();
    expectProblem(refused, 503, 'services_unreadable');
    expect(refused.headers.get('retry-after')).toBeNull();
    expect((await ask(`${own.url}/tenants/self`, { key })).status).toBe(200);
  });
});
