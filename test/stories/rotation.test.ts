import { pause } from '../../src/async/clock';
import { permissionsOf } from '../../src/domain/permissions';
import { beside } from '../support/beside';
import { crowdAt, type Crowd } from '../support/crowd';
import { startService, type Service } from '../support/service';
import { until } from '../support/waiting';

const ROTATIONS = Number(process.env['ROTATIONS'] ?? 3);
const GRACE_MS = 1_000;
/** The pause after each request. */
const REST_MS = 10;

interface Held {
  readonly key: string;
  /** When it expires; undefined for the newest key. */
  endsAt?: number;
}

describe('a key rotated under load on two servers', () => {
  let servers: readonly Service[];
  let crowds: readonly Crowd[];
  beforeAll(async () => {
    const first = await startService();
    servers = [first, await startService({ DATA_DIR: first.folder })];
    crowds = servers.map(({ url }) => crowdAt(url));
  });
  afterAll(async () => {
    for (const crowd of crowds) crowd.close();
    for (const server of servers) expect(await server.stop()).toBe(0);
  });

  it('fails no request before the grace period ends, and is accepted for none after it', async () => {
    const by = await beside(servers[0]!);
    const { tenantId } = await by.newTenant();
    const owner = await by.newApplication(
      tenantId,
      'management',
      ...permissionsOf('management').map(({ type }) => type),
    );
    const shop = await by.newApplication(tenantId, 'management', 'tenant:read', 'tenant:update');
    const keys: Held[] = [{ key: shop.key }];
    const counts = { before: 0, after: 0, between: 0 };
    const wrong: string[] = [];
    let isGoing = true;

    /** A key counts as valid until the end that the rotation announced, on the same clock as the servers'. */
    const use = async (crowd: Crowd, held: Held, isWrite: boolean): Promise<void> => {
      const startedAt = Date.now();
      const { status } = await crowd.ask('/tenants/self', {
        key: held.key,
        ...(isWrite ? { method: 'PUT', body: { name: `At ${startedAt}` } } : {}),
      });
      const [ended, endsAt = Infinity] = [Date.now(), held.endsAt];
      const when = ended < endsAt ? 'before' : startedAt >= endsAt ? 'after' : 'between';
      counts[when] += 1;
      const isFine = when === 'between' || (when === 'before' ? status === 200 : status === 401);
      if (!isFine) wrong.push(`${isWrite ? 'a write' : 'a read'} ${when} the end: ${status}`);
    };
    const worker = async (n: number): Promise<void> => {
      for (let turn = n; isGoing; turn += 1, await pause(REST_MS))
        await use(crowds[turn % crowds.length]!, keys[(turn * 7 + n) % keys.length]!, turn % 3 === 0);
    };
    const workers = Array.from({ length: 6 }, (_, n) => worker(n));

    for (let rotation = 0; rotation < ROTATIONS; rotation += 1) {
      const response = await crowds[rotation % crowds.length]!.ask(`/applications/${shop.id}/regenerate`, {
        method: 'POST',
        key: owner.key,
        body: { grace_seconds: GRACE_MS / 1_000 },
      });
      expect(response.status).toBe(200);
      const former = keys.at(-1)!;
      const { expires_at: ends } = response.json.keys.at(-2);
      former.endsAt = Date.parse(ends);
      keys.push({ key: response.json.key });
      await until(() => Date.now() > (former.endsAt ?? 0) + 200, 3 * GRACE_MS, 'the end of the grace');
    }
    await until(() => counts.before > 50 && counts.after > 20, 30_000, 'enough requests');
    isGoing = false;
    await Promise.all(workers);
    expect(wrong).toEqual([]);
    console.log(`rotation: ${ROTATIONS} rotations, ${JSON.stringify(counts)}`);
  });
});
