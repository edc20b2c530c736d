import { fault } from '../../src/fault';
import Koa from 'koa';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ApiState } from '../../src/http/context';
import type { ApiDependencies } from '../../src/http/dependencies';
import { headerNames } from '../../src/configuration';
import { catchProblems } from '../../src/http/response/problem-response';
import { ok, route } from '../../src/http/routes/route';
import { routing, unrouted } from '../../src/http/routes/routing';
import { text } from '../../src/http/routes/schema';

const common = {
  tag: 'Limits',
  summary: 'X',
  response: { status: 200, description: 'X', schema: text, example: 'x' },
} as const;

const getThing = route({
  ...common,
  method: 'get',
  path: '/things/:id/parts/:part',
  operationId: 'getPart',
  handle: async ({ params }) => ok(params),
});
const getOwnThing = route({
  ...common,
  method: 'get',
  path: '/things/own',
  operationId: 'getOwnThing',
  handle: async () => ok('own'),
});
const deleteThing = route({
  ...common,
  method: 'delete',
  path: '/things/:id',
  operationId: 'deleteThing',
  handle: async ({ params }) => ok(params),
});

const getRead = route({
  ...common,
  method: 'get',
  path: '/read',
  operationId: 'getRead',
  isQuery: true,
  handle: async () => ok('stale'),
});

describe('a route with path parameters', () => {
  let server: Server;
  let url: string;
  const seen: (string | undefined)[] = [];
  beforeAll(async () => {
    const dependencies = {
      settings: { headers: headerNames('SVC'), publicUrl: '' },
      stores: {
        readModels: {
          read: async () => {
            throw fault('read_models_unavailable', 'They are away.');
          },
        },
      },
    } as unknown as ApiDependencies;
    const catching = catchProblems(dependencies);
    const app = new Koa<ApiState>();
    app.use(async (ctx, next) => {
      const application = { id: 'a', type: 'private', permissions: [] } as const;
      ctx.state.presented = { tenantId: 't', digest: 'd', at: '', deadline: 0 };
      ctx.state.identity = { tenantId: 't', keyId: 'k', application };
      ctx.state.path = ctx.path.replace(/\/$/, '');
      await catching(ctx, next);
      seen.push(ctx.state.route);
    });
    app.use(routing([getThing, getOwnThing, deleteThing, getRead], dependencies));
    app.use(unrouted);
    const handle = app.callback();
    server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  const ask = async (path: string, method = 'GET') => fetch(`${url}${path}`, { method });

  it('receives them decoded', async () => {
    expect(await (await ask('/things/42/parts/a%20b')).json()).toEqual({ id: '42', part: 'a b' });
    expect(await (await ask('/things/43/parts/x/')).json()).toEqual({ id: '43', part: 'x' });
    expect(await (await ask('/things/44', 'DELETE')).json()).toEqual({ id: '44' });
  });

  it('reads no read models that are away', async () => {
    const { status, headers, body } = await ask('/read').then(async (response) => ({
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as { code: string },
    }));
    expect([status, body.code]).toEqual([503, 'read_models_unavailable']);
    expect(headers.get('retry-after')).not.toBeNull();
    expect((await ask('/things/own')).status).toBe(200);
  });

  it('is logged by its declared path', async () => {
    seen.length = 0;
    await ask('/things/42/parts/7');
    await ask('/things/42', 'OPTIONS');
    await ask('/things/42');
    expect(seen).toEqual(['/things/:id/parts/:part', '/things/:id', undefined]);
  });
});
