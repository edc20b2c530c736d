import Router from '@koa/router';
import Koa from 'koa';
import bodyParser from 'koa-bodyparser';
import { createHash, randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import pino from 'pino';
import { Histogram } from 'prom-client';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { routes } from '../src/http/api';
import { securityHeaders } from '../src/http/middleware';
import { getTenant } from '../src/http/routes/tenants';
import { sampleOf } from '../src/http/schema';

const listen = (app: Koa): void => {
  const server = app.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    console.log(`Koa serves http://127.0.0.1:${port}`);
  });
};

/** The hello-world example of Koa. */
export const serveHello = (): void => {
  const app = new Koa();
  app.use(async (ctx) => {
    ctx.body = 'Hello';
  });
  listen(app);
};

/** Parses the body, and hashes the key in the header and the one in the body. */
export const serveDigests = (): void => {
  const app = new Koa();
  const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex');
  app.use(bodyParser());
  app.use(async (ctx) => {
    const { key } = ctx.request.body as { readonly key: string };
    ctx.body = { valid: digestOf(ctx.get('SVC-API-KEY')) !== digestOf(key) };
  });
  listen(app);
};

/**
 * The cost of the service's libraries alone, each used as in its introductory example: Koa, the router with the service's
 * paths, an in-memory rate limiter, a histogram and, at the level `info`, a log line per request, a hashed key, the service's headers and a
 * constant Tenant. No read model, no check of the key, no limits on input.
 */
export const serveLibraries = (level: 'info' | 'warn'): void => {
  const app = new Koa();
  const logger = pino({ level }, pino.destination({ dest: 2, sync: true }));
  const limiter = new RateLimiterMemory({ points: 1_000_000_000, duration: 60 });
  const seconds = new Histogram({ name: 's', help: 's', labelNames: ['method', 'route', 'status'] });
  const router = new Router();
  const tenant = 'schema' in getTenant.response ? sampleOf(getTenant.response.schema) : '';
  for (const { method, path } of routes)
    router[method](path, async (ctx) => {
      ctx.set({ 'Cache-Control': 'private, no-cache', ETag: '"0"' });
      ctx.body = tenant;
    });

  app.use(async (ctx, next) => {
    const [began, trace_id] = [performance.now(), randomUUID()];
    ctx.res.on('close', () => {
      const line = { method: ctx.method, route: String(ctx['_matchedRoute']), status: ctx.status };
      const ms = performance.now() - began;
      seconds.observe(line, ms / 1_000);
      logger.info({ ...line, ...ctx.state, trace_id, ms, client_address: ctx.ip }, 'request');
    });
    ctx.set({ ...securityHeaders, 'X-Trace-ID': trace_id });
    await next();
  });
  app.use(async (ctx, next) => {
    const { remainingPoints } = await limiter.consume(ctx.ip);
    ctx.set({ 'RateLimit-Policy': '"global";q=1000000000;w=60', RateLimit: `"global";r=${remainingPoints}` });
    await next();
  });
  app.use(async (ctx, next) => {
    const digest = createHash('sha256').update(ctx.get('SVC-API-KEY')).digest('hex');
    ctx.state = { application_id: digest.slice(0, 36), key_id: digest.slice(-36) };
    await next();
  });
  app.use(router.routes());
  listen(app);
};
