import { randomUUID } from 'node:crypto';
import { updateApplication } from '../../src/domain/applications';
import { digestOf, makeKey } from '../../src/ledger/api-key';
import { TIMES, type Times } from '../../src/times';
import { isNotTheApi } from '../support/described';
import { freshFolder } from '../support/folders';
import { freePort } from '../support/free-port';
import { ask, type ApiResponse } from '../support/http';
import { byOperator, fillStream, makeCustomer, openLedger } from '../support/ledgers';
import { found, scrape } from '../support/metrics';
import { operatorAt } from '../support/operator';
import { expectProblem } from '../support/problem';
import { answersIn, converse } from '../support/raw';
import { startCommand } from '../support/service';
import { stuckReadModels } from '../support/stuck';
import { succeeds, until } from '../support/waiting';

/** A data folder whose log has an event that the read models do not show and cannot store. */
const behindFolder = async () => {
  const folder = freshFolder();
  const operator = operatorAt(folder);
  const { tenant_id: tenant = '' } = await operator.json('tenant create --name A');
  const { application_id: application = '', key = '' } = await operator.json(
    `application create --tenant ${tenant} --name A --type management --permission tenant:read --permission tenant:update --permission log:read`,
  );
  const { ledger, close } = await openLedger(folder);
  await ledger.execute(byOperator(tenant, updateApplication(application, { name: 'Renamed' })));
  await close();
  return { folder, key, stuck: stuckReadModels(folder) };
};

/** A data folder without read models, whose log takes a moment to project. */
const unprojectedFolder = async () => {
  const folder = freshFolder();
  const tenantId = randomUUID();
  const key = makeKey(tenantId);
  const as = { tenantId, applicationId: randomUUID(), keyId: randomUUID(), digest: digestOf(key) };
  const program = await openLedger(folder);
  await fillStream(program.log, await makeCustomer(program), 10_000);
  await makeCustomer(program, { permissions: ['tenant:read'], as });
  await program.close();
  return { folder, key };
};

interface StartingBody {
  readonly progress: { readonly percent: number };
}

describe('a server whose read models have not caught up', () => {
  const begin = async (times: Times = TIMES) => {
    const { folder, key, stuck } = await behindFolder();
    const [PORT, OPS_PORT] = [await freePort(), await freePort()];
    const env = { DATA_DIR: folder, PORT, OPS_PORT };
    const { signal, exited } = startCommand(['serve'], env, { times });
    const operations = `http://127.0.0.1:${OPS_PORT}`;
    isNotTheApi(operations);
    await until(() => succeeds(ask(`http://127.0.0.1:${PORT}/permissions`)));
    return { folder, key, stuck, signal, exited, url: `http://127.0.0.1:${PORT}`, operations };
  };

  it('refuses what reads them only, accepts writes without waiting for the read models, and recovers once they have caught up', async () => {
    const { key, stuck, signal, exited, url, operations } = await begin();
    const read = await ask(`${url}/tenants/self`, { key });
    expectProblem(read, 503, 'read_models_unavailable');
    expect((read.json as unknown as StartingBody).progress).toEqual({ percent: 0 });
    expect(read.headers.get('retry-after')).toBe('1');
    expect((await ask(`${operations}/readyz`)).status).toBe(503);
    const others = { '/permissions': 200, '/tenants/self?as_of=2099-01-01': 200, '/logs?size=none': 400 };
    for (const [path, status] of Object.entries(others))
      expect([path, (await ask(`${url}${path}`, { key })).status]).toEqual([path, status]);
    // Events come from the log.
    const events = await ask(`${url}/events`, { key });
    expect(events.status).toBe(200);
    expect(events.text).toContain('"Renamed"');
    expect((await ask(`${url}/events?operation=archive`, { key })).status).toBe(200);
    // A malformed key is refused without a look-up, which works before anything is ready.
    expectProblem(await ask(`${url}/tenants/self`, { key: `${key}x` }), 401, 'key_refused');

    const written = await ask(`${url}/tenants/self`, { key, method: 'PUT', body: { name: 'Early' } });
    expect([written.status, written.headers.get('svc-read-pending')]).toEqual([200, 'true']);
    expect(found(await scrape({ operationsUrl: operations }), 'tenant_ledger_read_pending_total')).toBe(1);

    stuck.release();
    await until(async () => (await ask(`${operations}/readyz`)).status === 200);
    expect((await ask(`${url}/tenants/self`, { key })).json).toMatchObject({ name: 'Early' });
    signal('SIGTERM');
    expect(await exited).toBe(0);
  });

  it('refuses reads also while it is being stopped before it was ready', async () => {
    const { key, stuck, signal, exited, url } = await begin({ ...TIMES, waitMs: 500 });
    const { socket, received, closed } = converse(url);
    const headers = `Host: x\r\nSVC-API-KEY: ${key}\r\n`;
    const body = '{"name":"Last"}';
    socket.write(
      `PUT /tenants/self HTTP/1.1\r\n${headers}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    await ask(`${url}/tenants/self`, { key });
    signal('SIGTERM');
    await until(async () => !(await succeeds(ask(`${url}/permissions`))));
    socket.write(`${body}GET /tenants/self HTTP/1.1\r\n${headers}\r\n`);
    await closed;
    expect(answersIn(received()).map(({ status }) => status)).toEqual([200, 503]);
    stuck.release();
    expect(await exited).toBe(0);
  });
});

describe('a server whose read models are of another version, or absent', () => {
  it('builds them: until then reads are refused or wait, and never show less than the log', async () => {
    const { folder, key } = await unprojectedFolder();
    const [PORT, OPS_PORT] = [await freePort(), await freePort()];
    const { signal, exited } = startCommand(['serve'], { DATA_DIR: folder, PORT, OPS_PORT });
    const answers: ApiResponse[] = [];
    await until(async () => {
      const answer = await ask(`http://127.0.0.1:${PORT}/tenants/self`, { key }).catch(() => undefined);
      if (answer !== undefined) answers.push(answer);
      return answer?.status === 200;
    }, 30_000);
    for (const { status } of answers.slice(0, -1)) expect(status).toBe(503);
    expect(answers.at(-1)?.json.name).toBe('Acme');
    signal('SIGTERM');
    expect(await exited).toBe(0);
  });
});
