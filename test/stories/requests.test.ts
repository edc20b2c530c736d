import * as fc from 'fast-check';
import { permissionsOf } from '../../src/domain/authority';
import { routes } from '../../src/http/api';
import { newKey } from '../../src/ledger/api-key';
import { beside, type Beside, type NewApplication } from '../support/beside';
import { crowdAt, type Crowd } from '../support/crowd';
import { faultsIn } from '../support/described';
import { rightRequest, wrongRequest, type Generated } from '../support/generated-requests';
import { seed, seeded } from '../support/property';
import { answersIn, converse, isOfNode } from '../support/raw';
import { startService, type Service } from '../support/service';

/** The others are for services; test/http/facts and verify-key have their requests. */
const ofTenants = routes.filter(({ service }) => service === undefined);

/** `npm run campaign -- requests` sets more. */
const CASES = Number(process.env['CASES'] ?? 500);
const RAW_CASES = CASES / 5;
const MINUTES = 60_000 * Math.ceil(CASES / 1_000);

describe('requests generated from the declared routes', () => {
  let service: Service;
  let crowd: Crowd;
  let by: Beside;
  let caller: NewApplication;
  const statuses = new Map<number, number>();

  /** Some requests delete their tenant; the next ones are then sent by another. */
  const nextTenant = async (): Promise<void> => {
    const { tenantId } = await by.newTenant();
    const all = permissionsOf('management').map(({ type }) => type);
    caller = await by.newApplication(tenantId, 'management', ...all);
  };
  const tally = (status: number): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const summary = (): string =>
    JSON.stringify(Object.fromEntries([...statuses].toSorted(([a], [b]) => a - b)));

  beforeAll(async () => {
    service = await startService();
    crowd = crowdAt(service.url);
    by = await beside(service);
    await nextTenant();
  });
  afterEach(() => statuses.clear());
  afterAll(async () => {
    crowd.close();
    expect(service.stderr()).not.toMatch(/"level":[56]0|internal_error|nhandled/);
    expect(await service.stop()).toBe(0);
  });

  const anyRoute = <T>(make: (route: (typeof routes)[number]) => fc.Arbitrary<T>): fc.Arbitrary<T> =>
    fc.oneof(
      ...ofTenants.map((route) => ({ weight: route.method === 'delete' ? 1 : 6, arbitrary: make(route) })),
    );

  const sent = async ({ path, ...asking }: Generated, key: string | undefined) => {
    const response = await crowd.ask(path, { ...asking, ...(key === undefined ? {} : { key }) });
    tally(response.status);
    expect(response.status).toBeLessThan(500);
    if (response.status === 204 && asking.method === 'DELETE') await nextTenant();
    return response;
  };

  it(
    seeded(`succeed if they are valid, ${CASES / 2} times`),
    async () => {
      // Nobody has a key with a digest that was made up.
      const right = anyRoute(rightRequest).filter(({ path }) => !/\/:|\/keys\/find/.test(path));
      const property = fc.asyncProperty(right, async (request) => {
        const { status, text } = await sent(request, caller.key);
        expect({ text, isGood: [200, 201, 204, 304].includes(status) }).toMatchObject({ isGood: true });
      });
      // A simpler request would be another body with the same idempotency key, and refused for that.
      await fc.assert(property, { seed, numRuns: CASES / 2, endOnFailure: true });
      console.log(`right requests: ${CASES / 2}, SEED=${seed}, ${summary()}`);
    },
    MINUTES,
  );

  it(
    seeded(`are answered as described if they are invalid, ${CASES / 2} times`),
    async () => {
      const keys = fc.constantFrom('good', 'good', 'good', 'good', 'first', 'unknown', 'none', 'malformed');
      const keyOf = (kind: string): string | undefined => {
        if (kind === 'none') return undefined;
        if (kind === 'malformed') return 'key_nonsense';
        if (kind === 'unknown') return newKey(caller.id).key;
        return caller.key;
      };
      const property = fc.asyncProperty(anyRoute(wrongRequest), keys, async (request, kind) => {
        await sent(request, keyOf(kind));
      });
      await fc.assert(property, { seed, numRuns: CASES / 2 });
      console.log(`wrong requests: ${CASES / 2}, SEED=${seed}, ${summary()}`);
      for (const status of [200, 400, 401, 404, 405]) expect([...statuses.keys()]).toContain(status);
    },
    MINUTES,
  );

  /** One mutation of a request's bytes. */
  type Change = (bytes: Buffer) => Buffer;
  const place = fc.nat(400);
  const change: fc.Arbitrary<Change> = fc.oneof(
    fc.tuple(place, fc.nat(255)).map(([at, byte]): Change => (bytes) => {
      const changed = Buffer.from(bytes);
      changed[at % bytes.length] = byte;
      return changed;
    }),
    fc.tuple(place, fc.uint8Array({ maxLength: 20 })).map(
      ([at, more]): Change =>
        (bytes) =>
          Buffer.concat([bytes.subarray(0, at % bytes.length), more, bytes.subarray(at % bytes.length)]),
    ),
    fc.tuple(place, fc.nat(30)).map(
      ([at, length]): Change =>
        (bytes) =>
          Buffer.concat([bytes.subarray(0, at % bytes.length), bytes.subarray((at % bytes.length) + length)]),
    ),
    place.map(
      (at): Change =>
        (bytes) =>
          bytes.subarray(0, at % bytes.length),
    ),
    place.map(
      (at): Change =>
        (bytes) =>
          Buffer.concat([bytes, bytes.subarray(at % bytes.length)]),
    ),
    fc.constantFrom('\r\n', '\n', '\0', ' ', ':', '\r', '\t').chain((text) =>
      place.map(
        (at): Change =>
          (bytes) =>
            Buffer.concat([
              bytes.subarray(0, at % bytes.length),
              Buffer.from(text),
              bytes.subarray(at % bytes.length),
            ]),
      ),
    ),
  );
  const requestBytes = (kind: number): Buffer => {
    const headers = `Host: x\r\nSVC-API-KEY: ${caller.key}\r\n`;
    const body = '{"name":"Raw"}';
    const put = `PUT /tenants/self HTTP/1.1\r\n${headers}Content-Type: application/json\r\n`;
    return Buffer.from(
      [
        `GET /permissions HTTP/1.1\r\n${headers}\r\n`,
        `${put}Content-Length: ${body.length}\r\n\r\n${body}`,
        `${put}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
        `GET /logs?size=1 HTTP/1.1\r\n${headers}\r\nGET /tenants/self HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`,
        `HEAD /tenants/self HTTP/1.0\r\n${headers}\r\n`,
      ][kind % 5] ?? '',
    );
  };

  /** Sends the bytes in pieces, half-closes the connection, and waits until the server has closed it. */
  const spoken = async (bytes: Buffer, pieces: number): Promise<string> => {
    const { socket, received, closed } = converse(service.url, { allowHalfOpen: true });
    const length = Math.max(1, Math.ceil(bytes.length / pieces));
    for (let at = 0; at < bytes.length; at += length) {
      socket.write(bytes.subarray(at, at + length));
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.end();
    await closed;
    return received();
  };

  it(
    seeded(
      `get a complete problem, a bare status or no response if they are corrupted or junk, ${RAW_CASES} times`,
    ),
    async () => {
      const junk = fc.uint8Array({ minLength: 1, maxLength: 300 }).map(
        (bytes): Change =>
          () =>
            Buffer.from(bytes),
      );
      const changes = fc.array(fc.oneof({ weight: 8, arbitrary: change }, { weight: 1, arbitrary: junk }), {
        minLength: 1,
        maxLength: 4,
      });
      let refused = 0;
      const property = fc.asyncProperty(
        fc.nat(4),
        changes,
        fc.integer({ min: 1, max: 4 }),
        async (kind, all, pieces) => {
          const bytes = all.reduce((now, one) => (now.length === 0 ? now : one(now)), requestBytes(kind));
          // A response to HEAD has a length but no body, so it cannot be told apart from the next one.
          if (kind === 4 || /HEAD/.test(bytes.toString('latin1'))) return void (await spoken(bytes, pieces));
          for (const response of answersIn(await spoken(bytes, pieces))) {
            tally(response.status);
            expect(response.status).toBeLessThan(500);
            if (response.status < 400) continue;
            refused += 1;
            if (!isOfNode(response)) expect(faultsIn(response, { url: service.url })).toEqual([]);
          }
        },
      );
      await fc.assert(property, { seed, numRuns: RAW_CASES });
      console.log(`raw requests: ${RAW_CASES}, SEED=${seed}, ${summary()}`);
      expect(refused).toBeGreaterThan(RAW_CASES / 5);
      expect((await crowd.ask('/permissions', { key: caller.key })).status).toBe(200);
    },
    MINUTES,
  );
});
