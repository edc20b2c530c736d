import type { KeyUseRecord } from '../access/key-use-record';
import { keyRefused } from '../domain/authority';
import type { ApiContext, ApiMiddleware, ApiSettings } from '../http/context';
import { pathOf } from '../http/middleware';
import { readJsonBody, headerOf } from '../http/request';
import { countRefusal } from '../http/run-route';
import { bodyCheck } from '../http/validation';
import { digestOf, tenantOfKey } from '../ledger/api-key';
import type { Ledger } from '../ledger/ledger';
import { identityOf } from './sealed-session';
import { portalRefused, sessionCookie, type SessionCookie } from './session-cookie';

type Next = () => Promise<unknown>;

export interface PortalDependencies {
  /** Sessions are sealed with it. */
  readonly secret: string;
  readonly files: ApiMiddleware;
  readonly settings: ApiSettings;
  readonly ledger: Ledger;
  readonly keyUses: KeyUseRecord;
}

const API = '/portal/api';
/** The page chooses the name of the file, which says what is in it. */
const DOWNLOAD = /^\/portal\/download\/([^/]*)\/([\w.-]+\.(ndjson|csv|txt))$/;
/** Where the API has what is downloaded. */
const SOURCES = {
  ndjson: ['/events', 'application/x-ndjson'],
  csv: ['/events', 'text/csv'],
  txt: ['/tenants/self/evidence', 'text/plain'],
} as const;

/** Only a script of the portal can send it: a form or a link cannot, and another site would need our consent. */
const PORTAL_HEADER = 'portal-request';
/** Names the session in the answer about it. */
const SESSION_HEADER = 'Portal-Session';

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

/** Signs in and out. */
const changeSession = async (ctx: ApiContext, cookie: SessionCookie, dependencies: PortalDependencies) => {
  if (ctx.method === 'DELETE') return cookie.clear(ctx);
  await readJsonBody(ctx);
  const key = signInBody(ctx.request.body).key.trim();
  await mustBeValid(ctx, key, dependencies);
  return cookie.set(ctx, key);
};

/**
 * The console at `/portal`: its files, its session, the API below `/portal/api` for its own scripts, and links that
 * download. The cookie counts nowhere else.
 */
export const portal = (dependencies: PortalDependencies): ApiMiddleware => {
  const { secret, files, settings } = dependencies;
  const cookie = sessionCookie(secret, settings);
  const header = settings.headers.apiKey.toLowerCase();

  /** From here on it is a request to the API, with the key of the session as its only key. */
  const forward = (ctx: ApiContext, target: string, named: string | undefined): void => {
    const key = cookie.keyOf(ctx);
    if (key !== undefined) mustBeSameSession(named, key);
    ctx.req.headers[header] = key;
    ctx.req.url = target;
    ctx.state.path = pathOf(ctx);
  };

  /** Whoever asks for the session gets its name, and whose it is, if somebody is signed in. */
  const useSession = (ctx: ApiContext, next: Next): Promise<unknown> | undefined => {
    mustBeOwnScript(ctx);
    ctx.state.route = '/portal/session';
    ctx.set('Cache-Control', 'no-store');
    if (ctx.method !== 'GET') return changeSession(ctx, cookie, dependencies);
    const key = cookie.keyOf(ctx);
    if (key === undefined) return void (ctx.body = {});
    ctx.set(SESSION_HEADER, identityOf(key));
    forward(ctx, '/applications/key', identityOf(key));
    return next();
  };

  const callApi = (ctx: ApiContext, next: Next): Promise<unknown> => {
    mustBeOwnScript(ctx);
    forward(ctx, (ctx.req.url ?? '').slice(API.length), headerOf(ctx, PORTAL_HEADER));
    return next();
  };

  /** A browser saves an attachment, so a refusal must not be one. */
  const download = async (ctx: ApiContext, next: Next, link: RegExpExecArray): Promise<void> => {
    const [, named, file, type] = link;
    mustBeOwnPage(ctx);
    const [path, media] = SOURCES[type as keyof typeof SOURCES];
    forward(ctx, `${path}${ctx.search}`, named);
    ctx.req.headers.accept = media;
    ctx.set('Content-Disposition', `attachment; filename="${file}"`);
    try {
      await next();
    } catch (error) {
      ctx.remove('Content-Disposition');
      throw error;
    }
  };

  return async (ctx, next) => {
    const { method, state } = ctx;
    const { path } = state;
    if (path !== '/portal' && !path.startsWith('/portal/')) return next();
    if (path.startsWith(`${API}/`)) return callApi(ctx, next);
    if (path === '/portal/session' && /^(?:GET|POST|DELETE)$/.test(method)) return useSession(ctx, next);
    if (method !== 'GET' && method !== 'HEAD') return next();
    const link = DOWNLOAD.exec(path);
    return link === null ? files(ctx, next) : download(ctx, next, link);
  };
};
