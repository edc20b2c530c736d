import type { RequestListener, ServerResponse } from 'node:http';
import { beforeDeadline, isoNow, monotonicMs } from '../async/clock';
import { messageOf } from '../fault';
import type { RateLimitsStatus } from '../limits/rate-limits';
import { singleFlight } from '../async/single-flight';
import { securityHeaders } from './response/security-headers';

interface Status {
  readonly projections: readonly { readonly damage?: string }[];
}

/** The dependencies of the operations listener, which serves operators on a port of its own. */
export interface OperationsDependencies {
  readonly phase: () => 'starting' | 'ready' | 'stopping';
  /** What startup is waiting for, as long as there is no status. */
  readonly waitingFor: () => string | undefined;
  /** The status as shown to operators. */
  readonly status: () => Promise<Status>;
  /** Of this process only; undefined before it serves requests. */
  readonly limits: () => RateLimitsStatus | undefined;
  /** For Prometheus. */
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
}

/** Probes get a response within a second, even if the event store does not respond. */
const RESPOND_MS = 800;

const JSON_TYPE = 'application/json; charset=utf-8';

const sendText = (response: ServerResponse, status: number, text: string, type: string): void => {
  response.writeHead(status, { ...securityHeaders, 'Content-Type': type, 'Cache-Control': 'no-store' });
  response.end(text);
};

const send = (response: ServerResponse, status: number, body: unknown): void =>
  sendText(response, status, `${JSON.stringify(body)}\n`, JSON_TYPE);

interface Readiness {
  readonly code: number;
  readonly body: Readonly<Record<string, unknown>>;
}

const late = (): Error =>
  new Error(`The event log or the read models have not answered within ${RESPOND_MS} ms.`);

/** Ready: the log and the read models respond, no read model is damaged, and the read models have caught up once since startup. */
const readinessOf = ({ phase, waitingFor, status, limits }: OperationsDependencies) => {
  /** Concurrent probes share one query, so they do not pile up on an unresponsive store. */
  const statuses = singleFlight(status);
  let lastKnown: { readonly at: string; readonly status: Status } | undefined;

  const fetchStatus = async (): Promise<Status> => {
    const latest = await beforeDeadline(statuses.current().done, monotonicMs() + RESPOND_MS, late);
    lastKnown = { at: isoNow(), status: latest };
    return latest;
  };

  return async (): Promise<Readiness> => {
    const waiting = waitingFor();
    if (waiting !== undefined) return { code: 503, body: { status: phase(), waiting_for: waiting } };
    try {
      const detail = await fetchStatus();
      const current = phase();
      const damage = detail.projections.flatMap((projection) => projection.damage ?? []);
      if (damage.length > 0)
        return {
          code: 503,
          body: { status: 'unavailable', reason: damage.join(' '), ...detail, limits: limits() },
        };
      return {
        code: current === 'ready' ? 200 : 503,
        body: { status: current, ...detail, limits: limits() },
      };
    } catch (error) {
      const last = lastKnown === undefined ? {} : { last_known: { at: lastKnown.at, ...lastKnown.status } };
      const body = { status: 'unavailable', reason: messageOf(error), limits: limits(), ...last };
      return { code: 503, body };
    }
  };
};

export const operations = (dependencies: OperationsDependencies): RequestListener => {
  const readiness = readinessOf(dependencies);
  return (request, response) => {
    const path = (request.url ?? '').split('?')[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return send(response, 405, { methods: ['GET', 'HEAD'] });
    }
    if (path === '/livez') return send(response, 200, { status: 'live' });
    if (path === '/metrics')
      return void dependencies.metrics.text().then(
        (text) => sendText(response, 200, text, dependencies.metrics.contentType),
        (error: unknown) => send(response, 503, { status: 'unavailable', reason: messageOf(error) }),
      );
    if (path !== '/readyz') return send(response, 404, { paths: ['/livez', '/readyz', '/metrics'] });
    readiness().then(
      ({ code, body }) => send(response, code, body),
      () => send(response, 503, { status: 'unavailable' }),
    );
  };
};
