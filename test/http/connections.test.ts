import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { ask } from '../support/http';
import { itIf } from '../support/it-if';
import { found, scrape } from '../support/metrics';
import { serviceWithFewFiles, type Service } from '../support/service';
import { until } from '../support/waiting';

const FILES = 256;
const SOCKETS = 400;

describe('with few file descriptors, more connections than there is room for', () => {
  let service: Service;
  const sockets: Socket[] = [];
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    expect(await service.stop()).toBe(0);
  });

  const onLinux = itIf(process.platform === 'linux', 'it reads limits as Linux shows them');
  onLinux('are refused, and the operations listener still answers', async () => {
    service = await serviceWithFewFiles(FILES);
    const { hostname, port } = new URL(service.url);
    for (let n = 0; n < SOCKETS; n += 1) {
      const socket = connect({ port: Number(port), host: hostname }).on('error', () => undefined);
      sockets.push(socket);
      await once(socket, 'connect');
    }
    await until(() => sockets.some(({ closed }) => closed));
    const ready = await fetch(`${service.operationsUrl}/readyz`);
    expect(ready.status).toBe(200);
    const metrics = await scrape(service);
    const max = found(metrics, 'tenant_ledger_http_connections_max');
    const open = found(metrics, 'tenant_ledger_http_connections');
    expect({ max, open }).toEqual({ max: FILES / 2, open: FILES / 2 });
    await until(() => sockets.filter(({ closed }) => closed).length === SOCKETS - max);
    expect(found(await scrape(service), 'tenant_ledger_http_connections_refused_total')).toBe(SOCKETS - max);
    expect(service.stderr()).toContain('Raise the limit of open files.');

    for (const socket of sockets) socket.destroy();
    await until(async () => {
      const answer = await ask(`${service.url}/tenants/self`, { key: service.key }).catch(() => undefined);
      return answer?.status === 200;
    });
  });
});
