import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { itIf } from '../support/it-if';
import { has } from '../support/programs';
import { storesOf } from '../support/profile';
import { loggedBy, serviceForTests } from '../support/service';
import { until } from '../support/waiting';
import { installed } from './installed';
import { blocks, textOf } from './pages';

const run = promisify(execFile);

describe('docs/services.md', () => {
  const service = serviceForTests();
  let env: NodeJS.ProcessEnv;
  const folder = freshFolder();
  const tenantId = async () =>
    (await ask(`${service.url}/tenants/self`, { key: service.key })).json.id as string;
  const rows = async (entityId: string) =>
    (await ask(`${service.url}/logs?entity_id=${entityId}`, { key: service.key })).json.data as object[];
  const questions = () => loggedBy(service, '"/keys/verify"').length;

  beforeAll(async () => {
    env = {
      PATH: `${installed()}:${process.env['PATH']}`,
      URL: service.url,
      KEY: service.key,
      DATA_DIR: service.folder,
      ...storesOf(service.folder),
    };
    const script = `set -e\n${blocks('docs/services.md', 'sh').join('')}\ncat verified.json >&2\nprintf '\\n%s' "$SERVICE_KEY"`;
    const { stdout, stderr } = await run('sh', ['-c', script], { env, cwd: folder });
    const [accepted, row] = stdout.split('\n')[0]?.split('}{') ?? [];
    expect(stderr).toContain('"valid":true');
    expect(stderr).toContain('"allowed":true');
    expect(`${accepted}${row}`).toContain('"accepted":1');
    env['SERVICE_KEY'] = stdout.split('\n').at(-1) ?? '';
  }, 60_000);

  it('has commands that verify a first key and report a first fact', async () => {
    expect(env['SERVICE_KEY']).toMatch(/^svc_/);
    expect(await rows('tok_1')).toMatchObject([{ operation: 'create', entity_type: 'token' }]);
  });

  it.each([
    ['node', 'js', 'use.mjs', 'service.mjs'],
    ['python3', 'python', 'use.py', 'service.py'],
  ] as const)('shows how it is used with %s', async (program, language, file, sample) => {
    if (!has(program, '--version')) return console.log(`docs/services.md: there is no ${program} here`);
    const [use = ''] =
      language === 'js' ? blocks('docs/services.md', 'js') : blocks('docs/services.md', 'python');
    writeFileSync(join(folder, file), use);
    writeFileSync(join(folder, sample), textOf(`docs/samples/${sample}`));
    expect((await run(program, [join(folder, file)], { env })).stdout).toBe('refused for good: []\n');
  });

  it('has an example in Node that asks seldom, and reports every fact once', async () => {
    const file = join(folder, 'services.mjs');
    const use = `
      const [valid, again, malformed] = [await verifyKey(process.env.KEY, 'tenant:read'),
        await verifyKey(process.env.KEY, 'tenant:read'), await verifyKey('key_x', 'tenant:read')];
      console.log(valid.allowed, again.allowed, malformed.valid, isKey(process.env.KEY));
      const facts = Array.from({ length: 501 }, () => newFact('${await tenantId()}', 'TokenUsed', { entityId: 'node' }));
      console.log((await report([...facts, { ...facts[0], type: 'X' }])).map(({ code }) => code).join());
      console.log((await report(facts)).length);`;
    writeFileSync(file, `${textOf('docs/samples/service.mjs')}${use}`);
    const before = questions();
    const { stdout } = await run(process.execPath, [file], { env });
    expect(stdout.trim().split('\n')).toEqual(['true true false true', 'invalid', '0']);
    await until(() => questions() > before);
    expect(questions()).toBe(before + 1);
    const { json } = await ask(`${service.url}/logs?entity_id=node&size=1`, { key: service.key });
    expect(json.pagination.total_items).toBe(501);
  });

  itIf(has('python3', '--version'), 'no python3')('has an example in Python that does the same', async () => {
    const use = `
first, again = verify_key(os.environ["KEY"], "tenant:read"), verify_key(os.environ["KEY"], "tenant:read")
print(first["allowed"], again["allowed"], verify_key("key_x", "tenant:read")["valid"])
facts = [new_fact("${await tenantId()}", "TokenUsed", {"entityId": "python"}) for _ in range(501)]
print([one["code"] for one in report(facts + [{**facts[0], "type": "X"}])], report(facts))`;
    const { stdout } = await run('python3', ['-c', `${textOf('docs/samples/service.py')}${use}`], {
      env,
    });
    expect(stdout.trim().split('\n')).toEqual(['True True False', "['invalid'] []"]);
    const { json } = await ask(`${service.url}/logs?entity_id=python&size=1`, { key: service.key });
    expect(json.pagination.total_items).toBe(501);
  });
});
