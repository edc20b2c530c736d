import { randomUUID } from 'node:crypto';
import { permissionsOf } from '../../src/domain/authority';
import { problems, type Problem, type ProblemCode } from '../../src/problems';
import { freshFolder } from '../support/folders';
import { eventsIn, operatorAt } from '../support/operator';

const operator = operatorAt(freshFolder());
const made = { tenant: '', gone: '', application: '', key: '' };
const nobody = randomUUID();

beforeAll(async () => {
  const { tenant_id: tenant } = await operator.json('tenant create --name A');
  const { tenant_id: gone } = await operator.json('tenant create --name B');
  const line = `application create --tenant ${tenant} --name C --type public`;
  const application = await operator.json(line);
  await operator.json(`tenant delete --yes ${gone}`);
  await operator.json(`key revoke --tenant ${tenant} ${application['key_id']}`);
  Object.assign(made, {
    tenant,
    gone,
    application: application['application_id'],
    key: application['key_id'],
  });
});

interface Refused {
  readonly line: () => string;
  readonly code: string;
  readonly says: () => readonly string[];
}

const refused: readonly Refused[] = [
  { line: () => `tenant show ${nobody}`, code: 'tenant_not_found', says: () => [nobody] },
  { line: () => `tenant set-plan ${nobody} --included-tokens 1`, code: 'tenant_not_found', says: () => [] },
  { line: () => `application list --tenant ${nobody}`, code: 'tenant_not_found', says: () => [nobody] },
  {
    line: () => `tenant create --name A --id ${made.tenant}`,
    code: 'already_exists',
    says: () => ['exists'],
  },
  { line: () => `tenant delete ${made.gone}`, code: 'tenant_deleted', says: () => [made.gone] },
  { line: () => `tenant create --name ${'x'.repeat(201)}`, code: 'validation_failed', says: () => ['200'] },
  {
    line: () => `application show --tenant ${made.tenant} ${nobody}`,
    code: 'application_not_found',
    says: () => [nobody],
  },
  {
    line: () => `application delete --tenant ${made.tenant} ${nobody}`,
    code: 'application_not_found',
    says: () => [nobody],
  },
  {
    line: () => `application create --tenant ${made.tenant} --id ${made.application} --name A --type public`,
    code: 'already_exists',
    says: () => [made.application],
  },
  {
    line: () =>
      `application create --tenant ${made.tenant} --name A --type public --permission tenant:update`,
    code: 'validation_failed',
    says: () => ['tenant:update', ...permissionsOf('public').map(({ type }) => type)],
  },
  {
    line: () =>
      `application set-permissions --tenant ${made.tenant} ${made.application} --permission token:fly`,
    code: 'validation_failed',
    says: () => ['token:fly', ...permissionsOf('public').map(({ type }) => type)],
  },
  {
    line: () => `key list --tenant ${made.tenant} --application ${nobody}`,
    code: 'application_not_found',
    says: () => [nobody],
  },
  {
    line: () => `key create --tenant ${made.tenant} --application ${made.application} --expires 2020-01-01`,
    code: 'validation_failed',
    says: () => ['2020-01-01T00:00:00.000Z', 'not in the future'],
  },
  { line: () => `key revoke --tenant ${made.tenant} ${nobody}`, code: 'key_not_found', says: () => [nobody] },
  {
    line: () => `key revoke --tenant ${made.tenant} ${made.key}`,
    code: 'key_not_found',
    says: () => [made.key],
  },
];

describe('a command that the state of a tenant does not allow', () => {
  it('exits with 1, or 4 if there is no such tenant, and one line with the code on stderr, and writes nothing', async () => {
    const before = await eventsIn(operator.folder);
    const ended = await operator.runAll(refused.map(({ line }) => `${line()} --json`));
    for (const [at, { line, code, says }] of refused.entries()) {
      const { code: exit, stdout, stderr = '' } = ended[at] ?? {};
      const expected = code === 'tenant_not_found' ? 4 : 1;
      expect({ line: line(), exit, stdout }).toEqual({ line: line(), exit: expected, stdout: '' });
      const { error } = JSON.parse(stderr) as { error: { code: string; message: string } };
      expect({ line: line(), error }).toEqual({ line: line(), error: { code, message: expect.any(String) } });
      for (const text of says()) expect(error.message).toContain(text);
    }
    const [{ line: first, code: firstCode }] = refused as [Refused];
    expect((await operator.run(first())).stderr).toMatch(
      new RegExp(`^tenant-ledger: .+\\.? \\[${firstCode}\\]\\n$`),
    );
    expect(await eventsIn(operator.folder)).toEqual(before);
  });

  it('has a code that `explain` describes', async () => {
    const codes = [...new Set(refused.map(({ code }) => code))];
    for (const code of codes) {
      const { status, title, meaning }: Problem = problems[code as ProblemCode];
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
