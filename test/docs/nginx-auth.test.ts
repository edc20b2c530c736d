import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { makeKey } from '../../src/ledger/api-key';
import { beside } from '../support/beside';
import { isNotTheApi } from '../support/described';
import { freshFolder } from '../support/folders';
import { freePort } from '../support/free-port';
import { ask } from '../support/http';
import { itIf } from '../support/it-if';
import { has } from '../support/programs';
import { newService } from '../support/services';
import { startService } from '../support/service';
import { succeeds, until } from '../support/waiting';
import { textOf } from './pages';

describe('docs/deployment/nginx-auth.conf', () => {
  itIf(has('nginx', '-v'), 'no nginx')(
    'forwards requests with a valid key only, and names their tenant',
    async () => {
      const service = await startService();
      const by = await beside(service);
      const { tenantId } = await by.newTenant();
      const reader = await by.newApplication(tenantId, 'private', 'token:read');
      const other = await by.newApplication(tenantId, 'private', 'token:create');
      const { key } = await newService(by, 'verify');
      const folder = freshFolder();
      const [port, behind] = [await freePort(), await freePort()];
      const own = join(folder, 'service.conf');
      writeFileSync(own, `proxy_set_header SVC-API-KEY ${key};`, { mode: 0o600 });
      const locations = textOf('docs/deployment/nginx-auth.conf')
        .replace('http://127.0.0.1:8080', service.url)
        .replace('127.0.0.1:9000', `127.0.0.1:${behind}`)
        .replace('/etc/nginx/tenant-ledger-service.conf', own);
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (one) => `${one}_temp_path ${folder}/${one};`,
      );
      const file = join(folder, 'nginx.conf');
      writeFileSync(
        file,
        `daemon off; pid ${folder}/pid; error_log stderr; events {}
       http { access_log off; ${paths.join(' ')} server { listen 127.0.0.1:${port}; ${locations} } }`,
      );
      const program = createServer(({ headers }, response) =>
        response.end(`${String(headers['svc-tenant-id'])} ${String(headers['svc-api-key'])}`),
      ).listen(Number(behind), '127.0.0.1');
      const nginx = spawn('nginx', ['-c', file, '-p', folder], { stdio: 'ignore' });
      const url = `http://127.0.0.1:${port}`;
      isNotTheApi(url);
      const get = (sent?: string) =>
        ask(`${url}/tokens/x`, {
          headers: { 'SVC-TENANT-ID': 'forged' },
          ...(sent === undefined ? {} : { key: sent }),
        });
      await until(() => succeeds(get()));
      expect(await get(reader.key)).toMatchObject({ status: 200, text: `${tenantId} undefined` });
      expect((await get(other.key)).status).toBe(403);
      for (const sent of [undefined, makeKey(tenantId)]) expect((await get(sent)).status).toBe(401);
      nginx.kill();
      await once(nginx, 'close');
      program.close();
    },
  );
});
