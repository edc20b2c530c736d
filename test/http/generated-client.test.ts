import { OpenAPIClientAxios, type Document, type OpenAPIClient } from 'openapi-client-axios';
import { ask } from '../support/http';
import { startService } from '../support/service';

describe('a client that is generated from the description', () => {
  it('has every operation by its id, and reads and writes', async () => {
    const { url, key } = await startService();
    const definition = (await ask(`${url}/openapi.json`)).json as Document;
    const options = { baseURL: url, headers: { 'SVC-API-KEY': key }, validateStatus: () => true };
    const api = new OpenAPIClientAxios({ definition, axiosConfigDefaults: options });
    const client: OpenAPIClient = await api.init();
    const reads = api
      .getOperations()
      .filter(({ method, path }) => /^get$/.test(method) && !/\{|\/key$|\/verify$/.test(path));
    expect(reads.length).toBeGreaterThan(8);
    for (const { operationId = '' } of reads)
      expect([operationId, (await client[operationId]!()).status]).toEqual([operationId, 200]);
    for (const parameters of [{ entity_type: 'tenant', size: 5 }, { operation: 'update' }])
      expect((await client['listLogs']!(parameters)).data.data.length).toBeGreaterThan(0);

    const renamed = await client['updateTenant']!({}, { name: 'By a client' });
    expect([renamed.status, renamed.data.name]).toEqual([200, 'By a client']);
    const shop = { name: 'Shop', type: 'private', permissions: ['token:read'] };
    const created = await client['createApplication']!({}, shop);
    expect(created.status).toBe(201);
    const named = { id: String(created.data.id) };
    expect((await client['getApplication']!(named)).data.name).toBe('Shop');
    expect((await client['deleteApplication']!(named)).status).toBe(204);
    expect((await client['getApplication']!(named)).data.code).toBe('application_not_found');
  });
});
