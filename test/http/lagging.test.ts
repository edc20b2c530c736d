import { randomUUID } from 'node:crypto';
import { createApplication } from '../../src/domain/applications';
import { createTenant } from '../../src/domain/tenant';
import { newKey } from '../../src/ledger/api-key';
import { beside, type Beside } from '../support/beside';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { startService, type Service } from '../support/service';
import { whileStuck } from '../support/stuck';
import { until } from '../support/waiting';

describe('a server with read models that lag behind', () => {
  let service: Service;
  let by: Beside;
  beforeAll(async () => {
    service = await startService();
    by = await beside(service);
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
  });

  it('does not refuse the key of a Tenant that they do not show yet', async () => {
    const tenantId = randomUUID();
    const { key, input } = newKey(tenantId);
    const get = () => ask(`${service.url}/tenants/self`, { key });
    await whileStuck(service.folder, async () => {
      await by.write(
        tenantId,
        createTenant({ name: 'New', ownerId: randomUUID(), includedMonthlyActiveTokens: 0 }),
      );
      const application = { applicationId: randomUUID(), name: 'A', type: 'management' as const, key: input };
      await by.write(tenantId, createApplication({ ...application, permissions: ['tenant:read'] }));
      expect((await ask(`${service.url}/permissions`, { key })).status).toBe(200);
      expectProblem(await get(), { status: 503, code: 'read_models_unavailable' });
    });
    await until(async () => (await get()).json.name === 'New', 5_000, 'the Tenant');
  });
});
