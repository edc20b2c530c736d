import { ask } from '../support/http';
import { startService, type Service } from '../support/service';

describe('the tenant over HTTP', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
  });

  it('is renamed, and a read that follows agrees', async () => {
    const { url, key } = service;
    const renamed = await ask(`${url}/tenants/self`, { method: 'PUT', key, body: { name: 'Renamed' } });
    expect(renamed.status).toBe(200);
    const read = await ask(`${url}/tenants/self`, { key });
    expect(read.json).toEqual(renamed.json);
    expect(read.headers.get('etag')).toBe(renamed.headers.get('etag'));
  });
});
