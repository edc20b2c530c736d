import { signal } from '@preact/signals';
import type { Application, FoundSession, Problem } from './wire.js';

/** Only our own scripts can send it. It names the session that this page shows. */
const OWN = 'Portal-Request';
let shown = 'none';
const API = '/portal/api';
export const SESSION = '/portal/session';

export type Session =
  | { readonly status: 'unknown' }
  /** `reason`: why an earlier session ended. */
  | { readonly status: 'signed_out'; readonly reason?: string | undefined }
  | { readonly status: 'signed_in'; readonly application: Application };

export const session = signal<Session>({ status: 'unknown' });
/** The name of the Tenant, if the key may see it. */
export const tenantName = signal<string | undefined>(undefined);
/** Why the service does not answer, while it is asked again. */
export const outage = signal<string | undefined>(undefined);

/** A change was saved a moment ago that pages may not show yet. */
export const isPending = signal(false);

export interface Failed {
  readonly ok: false;
  readonly problem: Problem;
  readonly isTransient: boolean;
}
export type Result<T> =
  | {
      readonly ok: true;
      readonly value: T;
      /** Empty: it has none. */
      readonly etag: string;
    }
  | Failed;

interface Options {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

const UNREACHABLE: Problem = { status: 0, code: 'unreachable', title: 'The service cannot be reached.' };

const ENDED =
  'Your session has ended: the key was revoked or has expired, its Application or Tenant was deleted, you have signed out in another tab, or eight hours have passed. Sign in again.';

const beSignedOut = (reason?: string): void => {
  session.value = { status: 'signed_out', reason };
  tenantName.value = undefined;
};

export const endSession = (reason: string | undefined = ENDED): void => {
  if (session.value.status === 'signed_in') beSignedOut(reason);
};

const endIfRefused = (problem: Problem): void => {
  if (problem.code === 'key_refused') endSession();
  if (problem.code === 'portal_refused') endSession(textOf(problem));
};

const problemIn = async (response: Response): Promise<Problem> => {
  const body = (await response.json().catch(() => undefined)) as Problem | undefined;
  return (
    body ?? { status: response.status, code: 'unknown', title: `The service answered ${response.status}.` }
  );
};

const send = (path: string, { method = 'GET', body, headers = {}, signal: abort }: Options) =>
  fetch(path, {
    method,
    credentials: 'same-origin',
    cache: 'no-store',
    headers: {
      [OWN]: shown,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(abort === undefined ? {} : { signal: abort }),
  });

const TRACE = '-trace-id';
/** The operator chooses how our headers begin; every answer has one that tells. */
export const headerPrefix = signal('SVC');

const isReadPending = ({ headers }: Response): boolean => headers.has(`${headerPrefix.value}-read-pending`);

/** A page that shows anything else by now asks again when this has passed. */
const PENDING_MS = 5_000;
let pendingTimer: ReturnType<typeof setTimeout> | undefined;

const tellPending = (): void => {
  isPending.value = true;
  clearTimeout(pendingTimer);
  pendingTimer = setTimeout(() => (isPending.value = false), PENDING_MS);
};

const bodyOf = (response: Response): Promise<unknown> =>
  response.headers.get('Content-Type')?.startsWith('text/plain') === true ? response.text() : response.json();

const requestOnce = async <T>(path: string, options: Options): Promise<Result<T>> => {
  try {
    const response = await send(path, options);
    const traced = [...response.headers.keys()].find((name) => name.endsWith(TRACE));
    if (traced !== undefined) headerPrefix.value = traced.slice(0, -TRACE.length).toUpperCase();
    if (response.ok) {
      if (isReadPending(response)) tellPending();
      const value = response.status === 204 ? undefined : await bodyOf(response);
      return { ok: true, value: value as T, etag: response.headers.get('ETag') ?? '' };
    }
    const problem = await problemIn(response);
    endIfRefused(problem);
    const isTransient = response.headers.has('Retry-After') || /^50[24]$/.test(String(response.status));
    return { ok: false, problem, isTransient };
  } catch {
    return { ok: false, problem: UNREACHABLE, isTransient: true };
  }
};

export const pause = (ms: number, abort?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    abort?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 5_000;

export const nextPause = (ms?: number): number =>
  ms === undefined ? FIRST_PAUSE_MS : Math.min(MAX_PAUSE_MS, ms * 2);

/** What only reads is asked again until there is an answer; a write is up to the person. */
const request = async <T>(path: string, options: Options = {}): Promise<Result<T>> => {
  const { method = 'GET', signal: abort } = options;
  for (let ms = nextPause(); ; ms = nextPause(ms)) {
    const result = await requestOnce<T>(path, options);
    const isRepeated = !result.ok && result.isTransient && method === 'GET';
    if (abort?.aborted !== true) outage.value = isRepeated ? textOf(result.problem) : undefined;
    if (!isRepeated || abort?.aborted === true) return result;
    await pause(ms, abort);
  }
};

/** Calls the API with the key of the session. */
export const call = <T>(path: string, options: Options = {}): Promise<Result<T>> =>
  request(`${API}${path}`, options);

const REST_MS = 2_000;

/** Waits until the service answers again: the API, or what signs in and out. */
export const answered = async (path = `${API}/applications/key`): Promise<void> => {
  await pause(REST_MS);
  await request(session.value.status === 'signed_in' ? path : SESSION);
};

/**
 * Sends the writes of one form. What is sent again unchanged has the same idempotency key, until it has succeeded: it is done
 * once, also if its answer was lost, or the browser has repeated it.
 */
export const writer = () => {
  const keys = new Map<string, string>();
  return async <T>(path: string, options: Options): Promise<Result<T>> => {
    const write = JSON.stringify([options.method, path, options.body]);
    const key = keys.get(write) ?? crypto.randomUUID();
    keys.set(write, key);
    const headers = { ...options.headers, 'Idempotency-Key': key };
    const result = await call<T>(path, { ...options, headers });
    if (result.ok) keys.clear();
    return result;
  };
};

export type Write = ReturnType<typeof writer>;

/** A response that is read as it comes. Undefined: the service cannot be reached. */
export const openStream = (path: string, abort: AbortSignal): Promise<Response | undefined> =>
  send(`${API}${path}`, { signal: abort }).catch(() => undefined);

const begin = ({ session: named, application, tenant_name }: FoundSession): void => {
  if (named === undefined || application === undefined) return beSignedOut();
  shown = named;
  session.value = { status: 'signed_in', application };
  tenantName.value = tenant_name;
};

/** Finds out whose session this is. */
export const resume = async (): Promise<void> => {
  const found = await request<FoundSession>(SESSION);
  if (found.ok) begin(found.value);
  else beSignedOut(found.problem.status === 401 ? undefined : textOf(found.problem));
};

/** The page may say itself whose session it is. If not, it is asked for. */
export const start = (told = '{}'): void => {
  const found = JSON.parse(told) as FoundSession;
  if (found.session === undefined) void resume();
  else begin(found);
};

/** Tells the other tabs, which share the cookie. */
const tabs = new BroadcastChannel('portal session');
const tellTabs = (): void => tabs.postMessage('changed');

/** Any request tells whether the session is still valid, and the one that this page shows. */
export const isStillSignedIn = async (): Promise<boolean> => {
  if (session.value.status === 'signed_in') await call('/applications/key');
  return session.value.status === 'signed_in';
};

tabs.addEventListener('message', () => void isStillSignedIn());

export const signIn = async (key: string): Promise<Result<unknown>> => {
  const done = await request(SESSION, { method: 'POST', body: { key } });
  if (done.ok) {
    tellTabs();
    await resume();
  }
  return done;
};

/** Returns why it failed: the cookie is still there. Undefined: it succeeded. */
export const signOut = async (): Promise<Failed | undefined> => {
  const done = await request(SESSION, { method: 'DELETE' });
  if (!done.ok) return done;
  tellTabs();
  beSignedOut();
  return undefined;
};

export const textOf = ({ title, detail }: Problem): string => detail ?? title;

const UNKNOWN = new Set(['unreachable', 'outcome_unknown', 'idempotency_in_progress', 'unknown']);

/** Why a write failed, and whether anything was saved all the same. `isOver`: the service answers again. */
export const writeFailure = ({ problem }: Failed, isOver = false): string => {
  const isUnknown = UNKNOWN.has(problem.code) || [500, 502, 504].includes(problem.status);
  const why = isOver ? 'The service answers again.' : textOf(problem);
  if (isUnknown)
    return `${why} It is not known whether this was saved: send it again as it is, and it is done only once.`;
  return isOver ? `${why} Nothing was saved: send it again.` : `Nothing was saved: ${why}`;
};

/** Whether this is the Application that the session acts for. */
export const isOwn = ({ id }: Application): boolean =>
  session.value.status === 'signed_in' && session.value.application.id === id;

/** Whether this is the key that the session was signed in with. */
export const isOwnKey = (id: string): boolean =>
  session.value.status === 'signed_in' && session.value.application.key_id === id;

/** Whether the key of the session has a permission. */
export const holds = (permission: string): boolean =>
  session.value.status === 'signed_in' && session.value.application.permissions.includes(permission);

/** A link that saves what these filters select. It names the session, since a link cannot send our header. */
export const downloadLink = (file: string, query: string): string =>
  `/portal/download/${shown}/${file}?${query}`;

/** Asks whether a download would be refused, and why: a link that is followed could not say so here. */
export const refusalOf = async (link: string): Promise<string | undefined> => {
  const isRefused = await fetch(link, { method: 'HEAD', cache: 'no-store' }).then(
    ({ ok }) => !ok,
    () => true,
  );
  if (!isRefused) return undefined;
  const problem = await fetch(link, { cache: 'no-store' }).then(problemIn, () => UNREACHABLE);
  endIfRefused(problem);
  return textOf(problem);
};
