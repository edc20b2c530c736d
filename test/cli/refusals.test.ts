import { randomUUID } from 'node:crypto';
import { permissionsOf } from '../../src/domain/authority';
import { problems, type Problem, type ProblemCode } from '../../src/problems';
import { freshFolder } from '../support/folders';
import { eventsIn, operatorAt } from '../support/operator';

const operator = operatorAt(freshFolder());
const ids: Record<string, string> = { NOBODY: randomUUID() };

beforeAll(async () => {
  const { tenant_id: tenant = '' } = await operator.json('tenant create --name A');
  const { tenant_id: gone = '' } = await operator.json('tenant create --name B');
  const line = `application create --tenant ${tenant} --name C --type public`;
  const { application_id: application = '', key_id: key = '' } = await operator.json(line);
  await operator.json(`tenant delete --yes ${gone}`);
  await operator.json(`key revoke --tenant ${tenant} ${key}`);
  Object.assign(ids, { TENANT: tenant, GONE: gone, APPLICATION: application, KEY: key });
});

const withIds = (text: string): string => text.replaceAll(/[A-Z]{3,}/g, (name) => ids[name] ?? name);

const OF_PUBLIC = permissionsOf('public').map(({ type }) => type);

/** With names of ids in capitals. */
const refused: readonly (readonly [line: string, code: ProblemCode, ...says: readonly string[]])[] = [
  ['tenant show NOBODY', 'tenant_not_found', 'NOBODY'],
  ['tenant set-plan NOBODY --included-tokens 1', 'tenant_not_found'],
  ['application list --tenant NOBODY', 'tenant_not_found', 'NOBODY'],
  ['tenant create --name A --id TENANT', 'already_exists', 'exists'],
  ['tenant delete GONE', 'tenant_deleted', 'GONE'],
  [`tenant create --name ${'x'.repeat(201)}`, 'validation_failed', '200'],
  ['application show --tenant TENANT NOBODY', 'application_not_found', 'NOBODY'],
  ['application delete --tenant TENANT NOBODY', 'application_not_found', 'NOBODY'],
  [
    'application create --tenant TENANT --id APPLICATION --name A --type public',
    'already_exists',
    'APPLICATION',
  ],
  [
    'application create --tenant TENANT --name A --type public --permission tenant:update',
    'validation_failed',
    'tenant:update',
    ...OF_PUBLIC,
  ],
  [
    'application set-permissions --tenant TENANT APPLICATION --permission token:fly',
    'validation_failed',
    'token:fly',
    ...OF_PUBLIC,
  ],
  ['key list --tenant TENANT --application NOBODY', 'application_not_found', 'NOBODY'],
  [
    'key create --tenant TENANT --application APPLICATION --expires 2020-01-01',
    'validation_failed',
    '2020-01-01T00:00:00.000Z',
    'not in the future',
  ],
  ['key revoke --tenant TENANT NOBODY', 'key_not_found', 'NOBODY'],
  ['key revoke --tenant TENANT KEY', 'key_not_found', 'KEY'],
];

describe('a command that the state of a tenant does not allow', () => {
  it.each(refused)(
    '%s exits with 1, or 4 if there is no such tenant, says %s, and writes nothing',
    async (line, code, ...says) => {
      const before = await eventsIn(operator.folder);
      const ended = await operator.run(`${withIds(line)} --json`);
      expect(ended).toMatchObject({ code: code === 'tenant_not_found' ? 4 : 1, stdout: '' });
      const { error } = JSON.parse(ended.stderr) as { error: { code: string; message: string } };
      expect(error).toEqual({ code, message: expect.any(String) });
      for (const text of says) expect(error.message).toContain(withIds(text));
      expect(await eventsIn(operator.folder)).toEqual(before);
    },
  );

  it('says why in one line, with the code', async () => {
    const { stderr } = await operator.run(withIds('tenant show NOBODY'));
    expect(stderr).toMatch(/^tenant-ledger: .+\.? \[tenant_not_found\]\n$/);
  });

  it('has a code that `explain` describes', async () => {
    for (const code of new Set(refused.map(([, one]) => one))) {
      const { status, title, meaning }: Problem = problems[code];
      const explained = { code, status: status ?? null, title, meaning };
      expect(await operator.json(`explain ${code}`)).toEqual(explained);
    }
  });

  it('cannot have an unknown code explained', async () => {
    const { code, stdout, stderr } = await operator.run('explain nonsense');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('key_refused');
  });
});
