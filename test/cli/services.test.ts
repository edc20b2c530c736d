import { makeServiceKey } from '../../src/ledger/api-key';
import { freshFolder } from '../support/folders';
import { eventsIn, operatorAt } from '../support/operator';
import { command } from '../support/service';

describe('service commands', () => {
  const folder = freshFolder();
  const { run, json } = operatorAt(folder);
  const onStdin = (line: string, input: string) => command(line.split(' '), { DATA_DIR: folder }, input);
  const create = (may: string, more = '') => json(`service create --name Gateway --may ${may}${more}`);

  it('create a service whose key is shown once and stored as a digest', async () => {
    const made = await create('facts,verify', ' --expires 2100-01-01');
    expect(made).toEqual({
      service_id: expect.any(String),
      name: 'Gateway',
      may: ['facts', 'verify'],
      key_id: expect.any(String),
      expires_at: '2100-01-01T00:00:00.000Z',
      key: expect.stringMatching(/^svc_[0-9A-Za-z]{33}$/),
    });
    const { service_id: id = '', key = '' } = made;
    const shown = await json<Record<string, unknown>>(`service show ${id}`);
    expect(shown).toMatchObject({ status: 'active', live_keys: 1, keys: [{ status: 'active' }] });
    expect(await json('service list')).toContainEqual(expect.objectContaining({ service_id: id }));
    const audit = await run('audit');
    expect(audit.stdout).toContain('"ServiceKeyAdded"');
    expect(audit.stdout).toContain('"digest_sha256"');
    expect(audit.stdout).not.toContain('"digest"');
    for (const text of [JSON.stringify(shown), audit.stdout, JSON.stringify(await eventsIn(folder))])
      expect(text).not.toContain(key);
  });

  it('add a key, and revoke keys by their ids and from stdin', async () => {
    const { service_id: id = '', key = '' } = await create('verify');
    const { key_id: second = '' } = await json(`service key add ${id}`);
    const revoked = await onStdin('service key revoke --json', `found in a log: "${key}"\n`);
    expect([revoked.code, JSON.parse(revoked.stdout)]).toMatchObject([0, { status: 'revoked' }]);
    expect(revoked.stdout + revoked.stderr).not.toContain(key);
    await json(`service key revoke ${second}`);
    const again = await run(`service key revoke ${second}`);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('[key_not_found]')]);
    expect(await json(`service show ${id}`)).toMatchObject({ status: 'active', live_keys: 0 });
  });

  it('revoke a service for ever', async () => {
    const { service_id: id = '' } = await create('facts');
    expect(await json(`service revoke ${id}`)).toEqual({ service_id: id, status: 'revoked' });
    expect(await json(`service show ${id}`)).toMatchObject({
      status: 'revoked',
      keys: [{ status: 'revoked' }],
    });
    for (const line of [`service revoke ${id}`, `service key add ${id}`]) {
      const { code, stderr } = await run(line);
      expect([code, stderr]).toEqual([1, expect.stringContaining('is revoked. [service_not_found]')]);
    }
  });

  it('refuse what is wrong, and repeat no key', async () => {
    const key = makeServiceKey();
    const named = await run('service create --may facts --name', `My ${key}`);
    expect([named.code, named.stderr]).toEqual([1, expect.stringContaining('must not contain an API key')]);
    const argued = await run(`service key revoke ${key}`);
    expect([argued.code, argued.stderr]).toEqual([2, expect.stringContaining('Pass the key on stdin')]);
    const unknown = await onStdin('service key revoke', key);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('[key_not_found]')]);
    const ofOther = await onStdin('key find', key);
    expect([ofOther.code, ofOther.stderr]).toEqual([2, expect.stringContaining('service key revoke')]);
    for (const one of [named, argued, unknown, ofOther]) expect(one.stderr).not.toContain(key);
    const right = await run('service create --name A --may fact');
    expect([right.code, right.stderr]).toEqual([
      2,
      expect.stringContaining('one or several of facts, verify'),
    ]);
    const empty = await onStdin('service key revoke', '');
    expect(empty.stderr).toContain('tenant-ledger service key revoke KEY_ID.');
  });
});
