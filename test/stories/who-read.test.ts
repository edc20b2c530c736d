import { monotonicMs } from '../../src/async/clock';
import type { ClientUse } from '../../src/domain/events';
import type { KeyUse } from '../../src/domain/key-use';
import { beside, type Beside, type NewApplication } from '../support/beside';
import { freshFolder } from '../support/folders';
import { ask, type AskOptions } from '../support/http';
import { operatorAt } from '../support/operator';
import { serviceProcess, type ServiceProcess } from '../support/service';
import { until } from '../support/waiting';

const OFFICE = '192.0.2.1';
const THIEF = '2001:db8:1:2:3::4';
const THIEFS_NETWORK = '2001:db8:1:2::/64';

interface Recorded {
  readonly data: KeyUse;
  readonly metadata: { readonly clients: readonly ClientUse[] };
}

/** Requests come through a proxy that names their addresses, to a process that is killed. */
describe('who read, and from where,', () => {
  const folder = freshFolder();
  const operator = operatorAt(folder);
  let service: ServiceProcess;
  let by: Beside;
  let reader: NewApplication;

  const from = (address: string, path: string, more: AskOptions = {}) =>
    ask(`${service.url}${path}`, { key: reader.key, headers: { 'X-Forwarded-For': address }, ...more });
  const recorded = async (): Promise<readonly Recorded[]> =>
    (await by.events())
      .filter(({ type, data }) => type === 'KeyUsed' && (data as KeyUse).keyId === reader.keyId)
      .map((event) => event as unknown as Recorded);
  const operations = async () => (await recorded()).flatMap(({ data }) => Object.keys(data.operations));

  beforeAll(async () => {
    service = await serviceProcess({ DATA_DIR: folder, TRUSTED_PROXIES: '1' });
    by = await beside(service);
    reader = await by.newApplication(await by.tenantId(), 'management', 'tenant:read', 'log:read');
  });

  it('is on record within two seconds: a process that is killed does not lose it', async () => {
    await from(OFFICE, '/tenants/self');
    await until(async () => (await recorded()).length === 1);
    await from(OFFICE, '/events', { method: 'HEAD' });
    const { key, keyId } = await by.newApplication(await by.tenantId(), 'management', 'tenant:read');
    await from(OFFICE, '/tenants/self', { key });
    const isUsed = async () =>
      (await by.events()).some(({ type, data }) => type === 'KeyUsed' && (data as KeyUse).keyId === keyId);
    await until(isUsed);
    expect(await recorded()).toHaveLength(1);
    await from(THIEF, '/tenants/self');
    await until(async () => (await recorded()).length === 2);
    const begun = monotonicMs();
    for (const path of ['/events', '/events', '/logs/csv', '/events', '/logs/csv'])
      expect((await from(THIEF, path)).status).toBe(200);
    await until(async () => (await operations()).includes('exportLogs'));
    expect(monotonicMs() - begun).toBeLessThan(2_000);
    await service.kill();
    expect(await operations()).toEqual(expect.arrayContaining(['getTenant', 'listEvents', 'exportLogs']));
    const clients = (await recorded()).flatMap(({ metadata }) => metadata.clients);
    expect(clients.find(({ address }) => address === THIEFS_NETWORK)).toEqual({
      address: THIEFS_NETWORK,
      userAgent: 'node',
      requests: expect.any(Number),
      firstAt: expect.any(String),
      lastAt: expect.any(String),
    });
  });

  it.each([THIEF, '2001:DB8:1:2:0:0:0:9', '2001:0db8:0001:0002:aaaa::%eth0', THIEFS_NETWORK])(
    'is found by audit --client %s',
    async (address) => {
      const { code, stdout } = await operator.run(`audit --client ${address}`);
      expect(code).toBe(0);
      const lines = stdout.trim().split('\n').slice(0, -1);
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines) expect(line).toContain(THIEFS_NETWORK);
      const pretty = await operator.run(`audit --client ${address} --format pretty`);
      expect(pretty.stdout).toMatch(/ from .*2001:db8:1:2::\/64$/m);
      expect((await operator.run('audit --client 2001:db8:1:3::4')).stdout).toContain('"events":0');
    },
  );
});
