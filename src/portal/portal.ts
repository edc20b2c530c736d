import type { KeyUseRecord } from '../access/key-use-record';
import { holds, keyRefused } from '../domain/authority';
import type { ApiContext, ApiMiddleware, ApiSettings } from '../http/context';
import { pathOf } from '../http/middleware';
import { readJsonBody, headerOf } from '../http/request';
import { countRefusal } from '../http/run-route';
import { bodyCheck } from '../http/validation';
import { digestOf, tenantOfKey } from '../ledger/api-key';
import type { Ledger } from '../ledger/ledger';
import { FILES, type PortalFiles } from './files';
import { identityOf } from './sealed-session';
import { portalRefused, sessionCookie, type SessionCookie } from './session-cookie';

type Next = () => Promise<unknown>;

export interface PortalDependencies {
  /** Sessions are sealed with it. */
  readonly secret: string;
  readonly files: PortalFiles;
  readonly settings: ApiSettings;
  readonly ledger: Ledger;
  readonly keyUses: KeyUseRecord;
}

const API = '/portal/api';
/** The page chooses the name of the file, which says what is in it. */
const DOWNLOAD = /^\/portal\/download\/([^/]*)\/([\w.-]+\.(ndjson|csv|txt))$/;
const MEDIA = { ndjson: 'application/x-ndjson', csv: 'text/csv', txt: 'text/plain' };

/** Only a script of the portal can send it: a form or a link cannot, and another site would need our consent. */
const PORTAL_HEADER = 'portal-request';

const signInBody = bodyCheck<{ readonly key: string }>(
  { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
  {},
  { key: 'key_…' },
);

const mustBeOwnPage = (ctx: ApiContext): void => {
  if (headerOf(ctx, 'sec-fetch-site') !== 'same-origin')
    throw portalRefused('This is only for the pages of the portal itself (Sec-Fetch-Site: same-origin).');
};

const mustBeOwnScript = (ctx: ApiContext): void => {
  mustBeOwnPage(ctx);
  if (headerOf(ctx, PORTAL_HEADER) === undefined)
    throw portalRefused(`This is only for the scripts of the portal itself (header ${PORTAL_HEADER}).`);
};

/**
 * Tabs share the cookie. A page that shows one Tenant must not go on with the key of another that somebody has signed in
 * with in another tab: its requests and links name the session that it was loaded in.
 */
const mustBeSameSession = (named: string | undefined, key: string): void => {
  if (named !== identityOf(key))
    throw portalRefused(
      'Somebody has signed in with another key in another tab of this browser. Reload this page to continue with that key, or sign in again.',
    );
};

const mustBeValid = async (ctx: ApiContext, key: string, { ledger, keyUses }: PortalDependencies) => {
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) throw keyRefused('malformed');
  const { at, deadline } = ctx.state;
  ctx.state.presented = { tenantId, digest: digestOf(key), at, deadline };
  await ledger.identify(ctx.state.presented, 0).catch((error: unknown) => {
    countRefusal(ctx, keyUses, error);
    throw error;
  });
};

/** The name of the Tenant, if the key may see it and the log can be read: a session needs neither. */
const tenantNameOf = async ({ state: { identity, deadline } }: ApiContext, ledger: Ledger) => {
  if (identity === undefined || !holds(identity.application, 'tenant:read')) return undefined;
  const name = ledger.ask(identity.tenantId, deadline, (tenant) =>
    'name' in tenant ? tenant.name : undefined,
  );
  return name.catch(() => undefined);
};

/** Signs in and out. */
const changeSession = async (ctx: ApiContext, cookie: SessionCookie, dependencies: PortalDependencies) => {
  if (ctx.method === 'DELETE') return cookie.clear(ctx);
  await readJsonBody(ctx);
  const key = signInBody(ctx.request.body).key.trim();
  await mustBeValid(ctx, key, dependencies);
  return cookie.set(ctx, key);
};

type Forward = (ctx: ApiContext, target: string, named: string | undefined) => void;

/** From here on it is a request to the API, with the key of the session as its only key. */
const forwarding = (cookie: SessionCookie, { headers }: ApiSettings): Forward => {
  const header = headers.apiKey.toLowerCase();
  return (ctx, target, named) => {
    const key = cookie.keyOf(ctx);
    if (key !== undefined) mustBeSameSession(named, key);
    ctx.req.headers[header] = key;
    ctx.req.url = target;
    ctx.state.path = pathOf(ctx);
  };
};

/** A browser saves an attachment, so a refusal must not be one. */
const download = async (ctx: ApiContext, next: Next, link: RegExpExecArray, forward: Forward) => {
  const [, named, file, type] = link;
  mustBeOwnPage(ctx);
  forward(ctx, type === 'txt' ? '/tenants/self/evidence' : `/events${ctx.search}`, named);
  ctx.req.headers.accept = MEDIA[type as keyof typeof MEDIA];
  ctx.set('Content-Disposition', `attachment; filename="${file}"`);
  try {
    await next();
  } catch (error) {
    ctx.remove('Content-Disposition');
    throw error;
  }
};

/**
 * The console at `/portal`: its files, its session, the API below `/portal/api` for its own scripts, and links that
 * download. The cookie counts nowhere else.
 */
export const portal = (dependencies: PortalDependencies): ApiMiddleware => {
  const { files, settings, ledger } = dependencies;
  const cookie = sessionCookie(dependencies.secret, settings);
  const forward = forwarding(cookie, settings);

  /** The name that pages and links give the session, and whose it is. Nothing if nobody is signed in. */
  const findSession = async (ctx: ApiContext, next: Next) => {
    const key = cookie.keyOf(ctx);
    if (key === undefined) return {};
    const session = identityOf(key);
    forward(ctx, '/applications/key', session);
    await next();
    const application: unknown = JSON.parse(ctx.body as string);
    return { session, application, tenant_name: await tenantNameOf(ctx, ledger) };
  };

  const useSession = async (ctx: ApiContext, next: Next): Promise<void> => {
    mustBeOwnScript(ctx);
    ctx.state.route = '/portal/session';
    if (ctx.method === 'GET') ctx.body = await findSession(ctx, next);
    else await changeSession(ctx, cookie, dependencies);
    ctx.set('Cache-Control', 'no-store');
  };

  /** A page says itself whose session it is, if a browser opens it. If that is not known, its script asks and says why. */
  const sessionOfPage = async (ctx: ApiContext, next: Next): Promise<object> => {
    const isOpened = ctx.method === 'GET' && headerOf(ctx, 'sec-fetch-dest') === 'document';
    return isOpened ? findSession(ctx, next).catch(() => ({})) : {};
  };

  return async (ctx, next) => {
    const { method } = ctx;
    const { path } = ctx.state;
    if (path !== '/portal' && !path.startsWith('/portal/')) return next();
    if (path.startsWith(`${API}/`)) {
      mustBeOwnScript(ctx);
      forward(ctx, (ctx.req.url ?? '').slice(API.length), headerOf(ctx, PORTAL_HEADER));
      return next();
    }
    if (path === '/portal/session' && /^(?:GET|POST|DELETE)$/.test(method)) return useSession(ctx, next);
    if (method !== 'GET' && method !== 'HEAD') return next();
    const link = DOWNLOAD.exec(path);
    if (link !== null) return download(ctx, next, link, forward);
    if (path.startsWith(FILES)) return files.sendScript(ctx, next);
    return files.sendPage(ctx, await sessionOfPage(ctx, next));
  };
};
