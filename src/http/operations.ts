import type { RequestListener, ServerResponse } from 'node:http';
import { messageOf } from '../fault';
import type { RateLimitsStatus } from '../limits/rate-limits';
import type { LedgerStatus } from '../status';
import { securityHeaders } from './security-headers';

/** The operations listener: for whoever runs the service, on a port of its own. */
export interface OperationsParts {
  readonly phase: () => 'starting' | 'ready' | 'stopping';
  readonly status: () => Promise<LedgerStatus>;
  /** Of this process alone. */
  readonly limits: () => RateLimitsStatus;
}

const send = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, {
    ...securityHeaders,
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
  });
  response.end(`${JSON.stringify(body)}\n`);
};

/** Ready: the log and the read models answer, and the read models have caught up once since the start. */
const readiness = async ({
  phase,
  status,
  limits,
}: OperationsParts): Promise<{ code: number; body: unknown }> => {
  const now = phase();
  try {
    const detail = await status();
    return { code: now === 'ready' ? 200 : 503, body: { status: now, ...detail, limits: limits() } };
  } catch (error) {
    return { code: 503, body: { status: 'unavailable', reason: messageOf(error) } };
  }
};

export const operations =
  (parts: OperationsParts): RequestListener =>
  (request, response) => {
    const path = (request.url ?? '').split('?')[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return send(response, 405, { methods: ['GET', 'HEAD'] });
    }
    if (path === '/livez') return send(response, 200, { status: 'live' });
    if (path !== '/readyz') return send(response, 404, { paths: ['/livez', '/readyz'] });
    void readiness(parts).then(({ code, body }) => send(response, code, body));
  };
