import type { KeyUseRecord } from '../access/key-use-record';
import { headerOf, type ApiContext, type ApiMiddleware, type ApiSettings } from '../http/context';
import { readJsonBody } from '../http/middleware/json-body';
import { pathOf } from '../http/middleware/start-request';
import { countRefusal } from '../http/run-route';
import { bodyCheck } from '../http/validation';
import { keyRefused } from '../domain/authority';
import { fault, type Fault } from '../fault';
import { digestOf, tenantOfKey } from '../ledger/api-key';
import type { Ledger } from '../ledger/ledger';
import type { PortalFile, PortalFiles } from './files';
import { identityOf, sessions, tickets } from './session';

type Next = () => Promise<unknown>;

export interface PortalDependencies {
  /** What sessions are sealed with. */
  readonly secret: string;
  readonly files: PortalFiles;
  readonly settings: ApiSettings;
  readonly keys: Keys;
}

/** What checks keys, and what counts those that it refuses. */
interface Keys {
  readonly ledger: Ledger;
  readonly keyUses: KeyUseRecord;
}

const PAGES = /^\/portal(?:\/(?:logs|then|applications|tenant|usage))?$/;
const API = '/portal/api';
const DOWNLOAD = '/portal/download/';

/** Only a script of the portal itself can send it: a form or a link cannot, and another site would need our consent. */
const PORTAL_HEADER = 'portal-request';

/** What can be downloaded, and as what. */
const DOWNLOADS: Readonly<Record<string, { readonly path: string; readonly accept: string }>> = {
  'events.ndjson': { path: '/events', accept: 'application/x-ndjson' },
  'logs.csv': { path: '/logs/csv', accept: 'text/csv' },
};

const signInBody = bodyCheck<{ readonly key: string }>(
  { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
  {},
  { key: 'key_…' },
);

const downloadBody = bodyCheck<{ readonly file: string; readonly query?: string }>(
  {
    type: 'object',
    properties: {
      file: { type: 'string', enum: Object.keys(DOWNLOADS) },
      query: { type: 'string' },
    },
    required: ['file'],
  },
  {},
  { file: 'logs.csv' },
);

/** The cookie of a session. Without `Max-Age` it ends with the browser. */
interface SessionCookie {
  readonly name: string;
  readonly attributes: string;
}

const SECURE: SessionCookie = {
  name: '__Host-portal',
  attributes: 'Path=/; Secure; HttpOnly; SameSite=Strict',
};
const LOCAL: SessionCookie = { name: 'portal-local', attributes: 'Path=/; HttpOnly; SameSite=Strict' };

const portalRefused = (reason: string): Fault => fault('portal_refused', reason);

const LOOPBACK_PEER = /^(?:::ffff:)?127\.|^::1$/;
const LOOPBACK_HOST = /^(?:localhost|[a-z0-9-]+\.localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]+)?$/i;

/**
 * A key must not cross a network unencrypted. Behind TLS the cookie is sent over TLS only. Without, it is allowed where
 * nothing leaves the machine: both ends are loopback, and so is the name, which another site could have pointed here.
 */
const cookieFor = (ctx: ApiContext, { publicUrl, trustedProxies }: ApiSettings): SessionCookie => {
  if (publicUrl.startsWith('https://')) return SECURE;
  const isLocal =
    LOOPBACK_PEER.test(ctx.req.socket.remoteAddress ?? '') && LOOPBACK_HOST.test(headerOf(ctx, 'host') ?? '');
  if (trustedProxies === 0 && isLocal) return LOCAL;
  throw portalRefused(
    'Signing in over plain HTTP would send the key unencrypted. Open the portal through TLS, with PUBLIC_URL set to its https address, or on the machine itself at a loopback address.',
  );
};

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
 * with in another tab: it names the session that it was loaded in.
 */
const mustBeSameSession = (ctx: ApiContext, key: string): void => {
  if (headerOf(ctx, PORTAL_HEADER) !== identityOf(key))
    throw portalRefused(
      'Somebody has signed in with another key in another tab of this browser. Reload this page to continue with that key, or sign in again.',
    );
};

const sendFile = (ctx: ApiContext, file: PortalFile): void => {
  ctx.status = 200;
  ctx.body = file.body;
  ctx.type = file.type;
};

const sendJson = (ctx: ApiContext, status: number, body: unknown): void => {
  ctx.status = status;
  ctx.set('Cache-Control', 'no-store');
  ctx.body = JSON.stringify(body);
  ctx.type = 'json';
};

/** From here on it is a request to the API, with the key of the session as its only key. */
const forward = (ctx: ApiContext, target: string, apiKey: string, key: string | undefined): void => {
  const name = apiKey.toLowerCase();
  if (key === undefined) delete ctx.req.headers[name];
  else ctx.req.headers[name] = key;
  ctx.req.url = target;
  ctx.state.path = pathOf(ctx);
};

/** What the steps below share. */
const requests = (secret: string, settings: ApiSettings) => {
  const { cookieOf, keyIn } = sessions(secret);
  return {
    apiKey: settings.headers.apiKey,
    cookieOf,
    cookieOfRequest: (ctx: ApiContext) => cookieFor(ctx, settings),
    keyOf: (ctx: ApiContext): string | undefined => keyIn(ctx.cookies.get(cookieFor(ctx, settings).name)),
  };
};
type Requests = ReturnType<typeof requests>;

/** Throws unless the key is valid now. */
const mustBeValid = async (ctx: ApiContext, { ledger, keyUses }: Keys, key: string): Promise<void> => {
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) throw keyRefused('malformed');
  const { at, deadline } = ctx.state;
  ctx.state.presented = { tenantId, digest: digestOf(key), at, deadline };
  await ledger.identify(ctx.state.presented, 0).catch((error: unknown) => {
    countRefusal(ctx, keyUses, error);
    throw error;
  });
};

/** Signs in and out, and names the session if somebody is signed in. */
const sessionStep = ({ cookieOf, cookieOfRequest, keyOf }: Requests, keys: Keys) => {
  const setCookie = (ctx: ApiContext, value: string, more = ''): void => {
    const { name, attributes } = cookieOfRequest(ctx);
    ctx.set('Set-Cookie', `${name}=${value}; ${attributes}${more}`);
    ctx.set('Cache-Control', 'no-store');
    ctx.status = 204;
  };
  const signIn = async (ctx: ApiContext): Promise<void> => {
    cookieOfRequest(ctx);
    await readJsonBody(ctx);
    const key = signInBody(ctx.request.body).key.trim();
    await mustBeValid(ctx, keys, key);
    setCookie(ctx, cookieOf(key));
  };
  return async (ctx: ApiContext, next: Next): Promise<void> => {
    const { method } = ctx;
    if (method !== 'GET' && method !== 'POST' && method !== 'DELETE') return void (await next());
    mustBeOwnScript(ctx);
    ctx.state.route = '/portal/session';
    if (method === 'POST') await signIn(ctx);
    else if (method === 'DELETE') setCookie(ctx, '', '; Max-Age=0');
    else {
      const key = keyOf(ctx);
      sendJson(ctx, 200, key === undefined ? {} : { session: identityOf(key) });
    }
  };
};

/** Makes and redeems tickets. */
const downloadSteps = (secret: string, { apiKey, keyOf }: Requests, keys: Keys) => {
  const { issue, use } = tickets(secret);
  const requiredKey = (ctx: ApiContext): string => {
    const key = keyOf(ctx);
    if (key === undefined) throw keyRefused('missing');
    return key;
  };
  return {
    makeTicket: async (ctx: ApiContext): Promise<void> => {
      ctx.state.route = `${API}/downloads`;
      const key = requiredKey(ctx);
      await readJsonBody(ctx);
      const { file, query = '' } = downloadBody(ctx.request.body);
      // The page can say that its session has ended; a link that fails cannot.
      await mustBeValid(ctx, keys, key);
      const { path, accept } = DOWNLOADS[file] as (typeof DOWNLOADS)[string];
      const ticket = issue(key, { target: query === '' ? path : `${path}?${query}`, accept, name: file });
      sendJson(ctx, 201, { url: `${DOWNLOAD}${ticket}` });
    },
    download: async (ctx: ApiContext, next: Next): Promise<void> => {
      mustBeOwnPage(ctx);
      const key = requiredKey(ctx);
      const allowed = use(key, ctx.state.path.slice(DOWNLOAD.length));
      if (allowed === undefined)
        throw portalRefused('This download link has been used or has expired. Start the download again.');
      ctx.req.headers.accept = allowed.accept;
      ctx.set('Content-Disposition', `attachment; filename="${allowed.name}"`);
      forward(ctx, allowed.target, apiKey, key);
      await next();
    },
  };
};

const sendPageOrFile = async (ctx: ApiContext, next: Next, files: PortalFiles): Promise<void> => {
  const { path } = ctx.state;
  if (PAGES.test(path)) {
    ctx.state.route = '/portal';
    ctx.set('Cache-Control', 'no-cache');
    ctx.set('Content-Security-Policy', files.policy);
    return sendFile(ctx, files.page);
  }
  const file = files.file(path);
  if (file === undefined) return void (await next());
  ctx.state.route = '/portal/files';
  ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
  sendFile(ctx, file);
};

/**
 * The console at `/portal`: its files, its session, and the API below `/portal/api/` for its own scripts. The cookie
 * counts nowhere else.
 */
export const portal = ({ secret, files, settings, keys }: PortalDependencies): ApiMiddleware => {
  const shared = requests(secret, settings);
  const session = sessionStep(shared, keys);
  const { makeTicket, download } = downloadSteps(secret, shared, keys);

  const callApi = async (ctx: ApiContext, next: Next): Promise<void> => {
    mustBeOwnScript(ctx);
    const key = shared.keyOf(ctx);
    if (key !== undefined) mustBeSameSession(ctx, key);
    if (ctx.method === 'POST' && ctx.state.path === `${API}/downloads`) return makeTicket(ctx);
    forward(ctx, (ctx.req.url ?? '').slice(API.length), shared.apiKey, key);
    await next();
  };

  return async (ctx, next) => {
    const { path } = ctx.state;
    if (path !== '/portal' && !path.startsWith('/portal/')) return void (await next());
    if (path === '/portal/session') return session(ctx, next);
    if (path.startsWith(`${API}/`)) return callApi(ctx, next);
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return void (await next());
    return path.startsWith(DOWNLOAD) ? download(ctx, next) : sendPageOrFile(ctx, next, files);
  };
};
