import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask } from '../support/http';
import { EMBEDDED } from '../support/profile';
import { serviceProcess } from '../support/service';

describe('a service whose log is damaged', () => {
  it('says so, and does not ask for the request again', async () => {
    const { url, key, folder, kill } = await serviceProcess(EMBEDDED);
    for (const name of ['events.db', 'events.db-wal']) {
      const file = join(folder, name);
      writeFileSync(file, Buffer.concat([readFileSync(file).subarray(0, 100), Buffer.alloc(1_000_000, 7)]));
    }
    for (const request of [{ method: 'PUT', body: { name: 'Other' } }, {}]) {
      const { status, json, headers } = await ask(`${url}/tenants/self`, { key, ...request });
      expect({ status, code: json.code, detail: json.detail }).toEqual({
        status: 503,
        code: 'log_unavailable',
        detail: 'Nothing was changed. The event log is damaged: the operator has to restore a backup.',
      });
      expect(headers.get('retry-after')).toBeNull();
    }
    await kill();
  });
});
