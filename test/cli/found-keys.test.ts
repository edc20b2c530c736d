import { addKey } from '../../src/domain/application-keys';
import { makeKey, newKey } from '../../src/ledger/api-key';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { byOperator, openLedger } from '../support/ledgers';
import { operatorAt } from '../support/operator';
import { command, startService, type Finished } from '../support/service';
import { until } from '../support/waiting';

/** A leaked key is read from stdin, never from the arguments, and never printed. */
describe('a key on stdin', () => {
  const folder = freshFolder();
  const operator = operatorAt(folder);
  const all: string[] = [];

  const given = async (line: string, input: string): Promise<Finished> => {
    const finished = await command(line.split(' '), { DATA_DIR: folder }, input);
    all.push(finished.stdout, finished.stderr);
    return finished;
  };

  const made = async (more = '') => {
    const { tenant_id: tenant } = await operator.json('tenant create --name Acme');
    const line = `application create --tenant ${tenant} --name Desk --type management --permission log:read`;
    const { application_id: application, key_id: keyId, key = '' } = await operator.json(line + more);
    return { tenant, application, keyId, key };
  };

  it('is traced to its tenant and its Application', async () => {
    const { tenant, application, keyId, key } = await made();
    const found = await given('key find --json', `  ${key}\n`);
    expect([found.code, found.stderr]).toEqual([0, '']);
    expect(JSON.parse(found.stdout)).toEqual({
      tenant_id: tenant,
      tenant_name: 'Acme',
      application_id: application,
      application_name: 'Desk',
      application_type: 'management',
      permissions: ['log:read'],
      key_id: keyId,
      key_name: null,
      status: 'active',
      created_at: expect.stringMatching(/Z$/),
      expires_at: null,
      last_used_at: null,
    });
    expect((await given('key find', key)).stdout).toMatch(/^status: +active$/m);
    expect(all.join()).not.toContain(key);
  });

  it('is found with its status and its last use, and revoked', async () => {
    const { tenant, application, key } = await made();
    const { stop, url } = await startService({ DATA_DIR: folder });
    expect((await ask(`${url}/permissions`, { key })).status).toBe(200);
    const revoked = await given('key revoke --json', key);
    expect([revoked.code, JSON.parse(revoked.stdout)]).toMatchObject([0, { status: 'revoked' }]);
    await until(async () => (await ask(`${url}/permissions`, { key })).status === 401);
    expect(await stop()).toBe(0);
    const found = JSON.parse((await given('key find --json', key)).stdout);
    expect(found).toMatchObject({ status: 'revoked', last_used_at: expect.stringMatching(/Z$/) });
    const again = await given('key revoke', key);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('[key_not_found]')]);
    await operator.json(`application delete --yes --tenant ${tenant} ${application}`);
    expect(all.join()).not.toContain(key);
  });

  it.each([
    ['the Application', 'application_deleted'],
    ['the tenant', 'tenant_deleted'],
  ])('is found even if %s is deleted', async (what, status) => {
    const { tenant, application, key } = await made();
    await operator.json(
      what === 'the tenant'
        ? `tenant delete --yes ${tenant}`
        : `application delete --yes --tenant ${tenant} ${application}`,
    );
    expect(JSON.parse((await given('key find --json', key)).stdout)).toMatchObject({ status });
  });

  it('is found if it is expired', async () => {
    const { tenant = '', application = '' } = await made();
    const [at, expiresAt] = ['2020-01-01T00:00:00.000Z', '2020-01-02T00:00:00.000Z'];
    const { key, input } = newKey(tenant, { expiresAt });
    const { ledger, close } = await openLedger(folder);
    await ledger.execute({ ...byOperator(tenant, addKey(application, input)), at });
    await close();
    expect(JSON.parse((await given('key find --json', key)).stdout)).toMatchObject({ status: 'expired' });
  });

  it('that is not a key is refused, and not repeated', async () => {
    const { tenant = '', key } = await made();
    const unknown = makeKey(tenant);
    for (const [input, name] of [
      [unknown, 'key_not_found'],
      [key.slice(0, -1), 'wrong_usage'],
      [`${key}x`, 'wrong_usage'],
      [key.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a')), 'wrong_usage'],
      ['', 'wrong_usage'],
      ['nonsense', 'wrong_usage'],
      ['x'.repeat(100_000), 'wrong_usage'],
    ] as const)
      for (const line of ['key find', 'key revoke']) {
        const refused = await given(line, input);
        const code = name === 'wrong_usage' ? 2 : 1;
        expect(refused).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(`[${name}]`) });
        if (input.length > 10) expect(refused.stderr).not.toContain(input);
      }
  });

  it('is not accepted as an argument', async () => {
    const { key } = await made();
    for (const name of ['find', 'revoke']) {
      const refused = await given(`key ${name} ${key}`, '');
      expect(refused.code).toBe(2);
      expect(refused.stderr).toContain(
        `Pass the key on stdin, for example: tenant-ledger key ${name} < FILE, not as an argument`,
      );
      expect(refused.stderr).not.toContain(key);
    }
  });

  it.each([
    ['a line of a log', (key: string) => `GET /permissions SVC-API-KEY: ${key} 200\n`],
    ['JSON', (key: string) => JSON.stringify({ match: `Authorization=${key}`, also: key })],
    ['a URL', (key: string) => `https://example.com/?key=${key}&page=2`],
    ['a long report', (key: string) => `${'nothing here\n'.repeat(20_000)}"${key}",\n`],
  ])('is found in %s', async (_, textWith) => {
    const { keyId, key } = await made();
    const found = await given('key find --json', textWith(key));
    expect([found.code, found.stderr]).toEqual([0, '']);
    expect(JSON.parse(found.stdout)).toMatchObject({ key_id: keyId });
  });

  it('is refused if there are several', async () => {
    const { key } = await made();
    const { key: other } = await made();
    const refused = await given('key revoke', `${key} ${other}`);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('There are 2 keys on stdin.') });
  });

  it('that is missing is asked for, in each command as it is', async () => {
    const [found, revoked] = [await given('key find', '\n'), await given('key revoke', '')];
    expect(found.stderr).toContain(
      'stdin is empty. Pass the key on stdin, for example: tenant-ledger key find < FILE.',
    );
    expect(revoked.stderr).toContain(
      'tenant-ledger key revoke < FILE. Or name the key by its id: tenant-ledger key revoke KEY_ID --tenant TENANT_ID.',
    );
  });
});
