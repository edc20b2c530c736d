import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { beforeDeadline, isoNow, monotonicMs } from '../async/clock';
import { messageOf } from '../fault';
import type { RateLimitsStatus } from '../limits/rate-limits';
import { TIMES } from '../times';
import { securityHeaders } from './middleware';

/** The dependencies of the operations listener, which serves operators on a port of its own. */
interface OperationsDependencies {
  readonly phase: () => 'starting' | 'ready' | 'stopping';
  /** What startup is waiting for, as long as there is no status. */
  readonly waitingFor: () => string | undefined;
  readonly status: () => Promise<object>;
  /** Of this process only; undefined before it serves requests. */
  readonly limits: () => RateLimitsStatus | undefined;
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> };
}

const sendText = (response: ServerResponse, status: number, text: string, type: string): void => {
  const length = { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) };
  response.writeHead(status, { ...securityHeaders, ...length, 'Cache-Control': 'no-store' });
  response.end(text);
};

const send = (response: ServerResponse, status: number, body: unknown): void =>
  sendText(response, status, `${JSON.stringify(body)}\n`, 'application/json; charset=utf-8');

const late = (): Error =>
  new Error(`The event log or the read models have not answered within ${TIMES.probeMs} ms.`);

/** Ready: the log and the read models respond, and the read models have caught up once since startup. */
const readinessOf = ({ phase, waitingFor, status, limits }: OperationsDependencies) => {
  let lastKnown: object | undefined;

  return async () => {
    const waiting = waitingFor();
    if (waiting !== undefined) return { code: 503, body: { status: phase(), waiting_for: waiting } };
    try {
      const latest = await beforeDeadline(status(), monotonicMs() + TIMES.probeMs, late);
      lastKnown = { at: isoNow(), ...latest };
      const now = phase();
      return { code: now === 'ready' ? 200 : 503, body: { status: now, ...latest, limits: limits() } };
    } catch (error) {
      const known = { limits: limits(), last_known: lastKnown };
      return { code: 503, body: { status: 'unavailable', reason: messageOf(error), ...known } };
    }
  };
};

export const operations = (dependencies: OperationsDependencies): RequestListener => {
  const readiness = readinessOf(dependencies);
  const { metrics } = dependencies;
  const handle = async ({ url = '' }: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [path] = url.split('?');
    if (path === '/livez') return send(response, 200, { status: 'live' });
    if (path === '/metrics') return sendText(response, 200, await metrics.metrics(), metrics.contentType);
    if (path === '/readyz') {
      const { code, body } = await readiness();
      return send(response, code, body);
    }
    send(response, 404, { paths: ['/livez', '/readyz', '/metrics'] });
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
