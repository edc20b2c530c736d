import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { beforeDeadline, isoNow, monotonicMs, orUndefined } from '../async/clock';
import { messageOf } from '../fault';
import type { RateLimitsStatus } from '../limits/rate-limits';
import { singleFlight } from '../async/single-flight';
import type { LedgerStatus, RunningRebuild } from '../projecting/status';
import { PAGE_SECURITY } from './pages/layout';
import { operationsPage, type EventLoopDelay } from './pages/operations-page';
import { isOwnHost } from './request/own-host';
import { securityHeaders } from './response/security-headers';

/** The dependencies of the operations listener, which serves operators on a port of its own. */
interface OperationsDependencies {
  readonly phase: () => 'starting' | 'ready' | 'stopping';
  /** What startup is waiting for, as long as there is no status. */
  readonly waitingFor: () => string | undefined;
  /** The status as shown to operators. */
  readonly status: () => Promise<LedgerStatus>;
  /** Of this process only; undefined before it serves requests. */
  readonly limits: () => RateLimitsStatus | undefined;
  readonly rebuilds: () => Promise<readonly RunningRebuild[]>;
  readonly eventLoop: () => EventLoopDelay;
  /** For people. */
  readonly about: { readonly version: string; readonly readModelStore: string; readonly boundTo: string };
  /** For Prometheus. */
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
}

/** Probes and scrapes get a response within a second, even if a store does not respond. */
export const RESPOND_MS = 800;

const JSON_TYPE = 'application/json; charset=utf-8';
const HTML_TYPE = 'text/html; charset=utf-8';

const sendText = (
  response: ServerResponse,
  status: number,
  text: string,
  type: string,
  more: Readonly<Record<string, string>> = {},
): void => {
  response.writeHead(status, {
    ...securityHeaders,
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    ...more,
  });
  response.end(text);
};

const send = (response: ServerResponse, status: number, body: unknown): void =>
  sendText(response, status, `${JSON.stringify(body)}\n`, JSON_TYPE);

interface Readiness {
  readonly code: number;
  readonly body: Partial<LedgerStatus> & {
    readonly status: string;
    readonly reason?: string;
    readonly waiting_for?: string;
    readonly limits?: RateLimitsStatus | undefined;
    readonly last_known?: LedgerStatus & { readonly at: string };
  };
}

const late = (): Error =>
  new Error(`The event log or the read models have not answered within ${RESPOND_MS} ms.`);

/** Ready: the log and the read models respond, no read model is damaged, and the read models have caught up once since startup. */
const readinessOf = ({ phase, waitingFor, status, limits }: OperationsDependencies) => {
  /** Concurrent probes share one query, so they do not pile up on an unresponsive store. */
  const statuses = singleFlight(status);
  let lastKnown: Readiness['body']['last_known'];

  const fetchStatus = async (): Promise<LedgerStatus> => {
    const latest = await beforeDeadline(statuses.current().done, monotonicMs() + RESPOND_MS, late);
    lastKnown = { at: isoNow(), ...latest };
    return latest;
  };

  return async (): Promise<Readiness> => {
    const waiting = waitingFor();
    if (waiting !== undefined) return { code: 503, body: { status: phase(), waiting_for: waiting } };
    try {
      const detail = await fetchStatus();
      const damage = detail.projections.flatMap((projection) => projection.damage ?? []);
      const state =
        damage.length === 0 ? { status: phase() } : { status: 'unavailable', reason: damage.join(' ') };
      return {
        code: state.status === 'ready' ? 200 : 503,
        body: { ...state, ...detail, limits: limits() },
      };
    } catch (error) {
      const last = lastKnown === undefined ? {} : { last_known: lastKnown };
      const body = { status: 'unavailable', reason: messageOf(error), limits: limits(), ...last };
      return { code: 503, body };
    }
  };
};

const MISDIRECTED =
  'This page is not shown under this name, which another site could have pointed here. Open it at a loopback name, at an address, or at the name that OPS_HOST is set to.';

const summaryOf = ({ status, reason, waiting_for, last_known }: Readiness['body']): string => {
  if (waiting_for !== undefined) return `It is ${status}, and waits for ${waiting_for}.`;
  const known = last_known === undefined ? '' : ` What follows was known at ${last_known.at}.`;
  return reason === undefined ? `It is ${status}.` : `It is ${status}: ${reason}${known}`;
};

const isWhole = (status: Partial<LedgerStatus>): status is LedgerStatus => status.log !== undefined;

/** The page for people. It shows what the other paths do, and changes nothing. */
const pageOf = async (
  { rebuilds, eventLoop, limits, about }: OperationsDependencies,
  readiness: () => Promise<Readiness>,
  host: string,
): Promise<string> => {
  const { body } = await readiness();
  const running = isWhole(body) ? await orUndefined(rebuilds(), RESPOND_MS) : undefined;
  return operationsPage({
    ...about,
    host,
    at: isoNow(),
    summary: summaryOf(body),
    status: isWhole(body) ? body : body.last_known,
    rebuilds: running ?? [],
    limits: limits(),
    eventLoop: eventLoop(),
  });
};

const PATHS = ['/', '/livez', '/readyz', '/metrics'];

export const operations = (dependencies: OperationsDependencies): RequestListener => {
  const readiness = readinessOf(dependencies);
  const { metrics, about } = dependencies;
  const handle = async ({ url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [path] = url.split('?');
    if (path === '/livez') return send(response, 200, { status: 'live' });
    if (path === '/metrics') return sendText(response, 200, await metrics.text(), metrics.contentType);
    if (path === '/readyz') {
      const { code, body } = await readiness();
      return send(response, code, body);
    }
    if (path !== '/') return send(response, 404, { paths: PATHS });
    const { host = '' } = headers;
    if (!isOwnHost(host, about.boundTo)) return send(response, 421, { reason: MISDIRECTED });
    const page = await pageOf(dependencies, readiness, host);
    sendText(response, 200, page, HTML_TYPE, { 'Content-Security-Policy': PAGE_SECURITY });
  };
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return send(response, 405, { methods: ['GET', 'HEAD'] });
    }
    handle(request, response).catch((error: unknown) =>
      send(response, 503, { status: 'unavailable', reason: messageOf(error) }),
    );
  };
};
