import { randomUUID } from 'node:crypto';
import { tenants } from '../../projections/tenants';
import { NEWEST_FORMAT } from '../../src/domain/formats';
import { freshFolder } from '../support/folders';
import { ask, type ApiResponse, type AskOptions } from '../support/http';
import { releaseWith } from '../support/release';
import {
  allProjected,
  command,
  commandProcess,
  serviceProcess,
  startService,
  type Service,
  type ServiceProcess,
} from '../support/service';
import { until } from '../support/waiting';

/**
 * A program that knows only the first format, as its own process. It projects tenants under an earlier version, as
 * happens between releases.
 */
const olderRelease = (): string =>
  releaseWith('0.0.9', [
    {
      file: 'src/domain/event-schemas.js',
      added: `for (const [type, versions] of Object.entries(exports.eventSchemas)) {
        const known = versions.filter(({ since }) => since === 1);
        if (known.length === 0) delete exports.eventSchemas[type];
        else exports.eventSchemas[type] = known;
      }`,
    },
    { file: 'src/domain/formats.js', added: 'exports.formats.length = 1; exports.NEWEST_FORMAT = 1;' },
    { file: 'projections/tenants.js', replaced: [[`version: ${tenants.version},`, 'version: 1,']] },
  ]);

const CLIENTS = 3;

describe('a rolling upgrade', () => {
  let older: string;
  let env: Record<string, string>;
  let old: ServiceProcess | undefined;
  let young: Service | undefined;
  let key: string;
  let applicationId: string;
  let rows = 0;

  const to = ({ url }: Service, path: string, asking: AskOptions = {}) =>
    ask(`${url}${path}`, { key, ...asking });
  /** Like a load balancer: tries the next instance when a connection is refused or closed without a response. */
  const toOneOf = async (
    services: readonly Service[],
    path: string,
    asking: AskOptions,
  ): Promise<ApiResponse> => {
    const headers = { 'SVC-IDEMPOTENCY-KEY': randomUUID() };
    for (const service of services) {
      const answer = await to(service, path, { headers, ...asking }).catch(() => undefined);
      if (answer !== undefined) return answer;
    }
    throw new Error('No instance answered.');
  };
  const post = (service: Service, path: string, body: object) => to(service, path, { method: 'POST', body });
  const keysPath = () => `/applications/${applicationId}/keys`;
  const operator = (line: string, main?: string) =>
    main === undefined ? command(line.split(' '), env) : commandProcess(line.split(' '), env, main);

  /**
   * Clients that rename the tenant, and add and revoke keys, on each of these instances in turn, or on another one if
   * that is gone. Each of their requests succeeds.
   */
  const writesTo = async (services: readonly Service[], rounds: number): Promise<void> => {
    const client = async (number: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const inTurn = (number + round) % 2 === 0 ? services : services.toReversed();
        const body = { name: `Client ${number}, round ${round}` };
        const renamed = await toOneOf(inTurn, '/tenants/self', { method: 'PUT', body });
        const added = await toOneOf(inTurn, keysPath(), { method: 'POST', body: {} });
        const path = `${keysPath()}/${added.json.id}`;
        const removed = await toOneOf(inTurn.toReversed(), path, { method: 'DELETE' });
        expect([renamed.status, added.status, removed.status]).toEqual([200, 201, 204]);
        rows += 3;
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  };

  const rowsAt = async (service: Service): Promise<number> =>
    (await to(service, '/logs?size=1')).json.pagination.total_items as number;

  /** Every write is shown, whichever instance took it, and no tenant is parked. */
  const expectAllAt = async (service: Service): Promise<void> => {
    await allProjected(service);
    expect(await rowsAt(service)).toBe(rows);
    const { json } = await ask(`${service.operationsUrl}/readyz`);
    for (const { parked } of json.projections) expect(parked).toEqual([]);
    expect(json.decisions).toEqual({ parked: [] });
  };

  beforeAll(async () => {
    older = olderRelease();
    env = { DATA_DIR: freshFolder() };
    old = await serviceProcess(env, older);
    ({ key } = old);
    applicationId = (await to(old, '/applications/key')).json.id;
    await allProjected(old);
    rows = await rowsAt(old);
  });

  it('runs old and new side by side: both accept writes and show everything', async () => {
    young = await startService(env);
    await writesTo([old!, young], 6);
    await expectAllAt(old!);
    await expectAllAt(young);
  });

  it('holds back events that the old program could not read: 409, which names the command', async () => {
    const named = await post(young!, keysPath(), { name: 'Nightly import' });
    expect([named.status, named.json.code]).toEqual([409, 'upgrade_unfinished']);
    expect(named.json.detail).toContain('`tenant-ledger log upgrade`');
    expect(named.headers.has('retry-after')).toBe(false);
    const graceful = await post(young!, `/applications/${applicationId}/regenerate`, { grace_seconds: 60 });
    expect([graceful.status, graceful.json.code]).toEqual([409, 'upgrade_unfinished']);
    await expectAllAt(young!);
  });

  it('cannot be finished by the operator while the old program runs', async () => {
    const { code, stderr } = await operator('log upgrade --yes');
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${old!.process.pid} projects read models`)]);
    expect((await post(young!, keysPath(), { name: 'Nightly import' })).status).toBe(409);
  });

  it('can be rolled back to the old program, which reads and writes as before', async () => {
    const writing = writesTo([old!, young!], 4);
    expect(await young!.stop()).toBe(0);
    await writing;
    expect(await old!.stop()).toBe(0);
    old = await serviceProcess(env, older);
    await writesTo([old], 2);
    await expectAllAt(old);
    const verified = await operator('log verify', older);
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringMatching(/findings_total: +0/)]);
    expect((await operator('projections verify', older)).code).toBe(0);
  });

  it('can be rolled forward again and finished without a restart, under writes; then the old program does not start', async () => {
    young = await startService(env);
    const writing = writesTo([old!, young], 8);
    expect(await old!.stop()).toBe(0);
    await until(async () => (await operator('log upgrade --yes')).code === 0, 30_000);
    const named = await post(young, keysPath(), { name: 'Nightly import' });
    expect([named.status, named.json.name]).toEqual([201, 'Nightly import']);
    rows += 1;
    await writing;
    await expectAllAt(young);
    const refused = await operator('serve', older);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      `The event log has format ${NEWEST_FORMAT}, and this program knows formats up to 1.`,
    );
    expect(await young.stop()).toBe(0);
  });
});
