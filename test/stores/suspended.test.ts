import { once } from 'node:events';
import { manyFacts, textOf } from '../support/facts';
import { freshFolder } from '../support/folders';
import { rename } from '../support/http';
import { operatorAt } from '../support/operator';
import { seed, seeded } from '../support/property';
import { outputsOf, serviceProcess, spawnProgram } from '../support/service';
import { until } from '../support/waiting';

describe('Ctrl-Z', () => {
  it(seeded('does not suspend a command that writes, which says so and goes on'), async () => {
    const operator = operatorAt(freshFolder());
    const { tenant_id: tenant = '' } = await operator.json('tenant create --name A');
    const facts = manyFacts([tenant], 400, seed);
    const child = spawnProgram(['ingest', '--json', '--wait', '1'], { DATA_DIR: operator.folder });
    const { stdout, stderr } = outputsOf(child);
    const ended = once(child, 'close');
    child.stdin?.write(textOf(facts.slice(0, 200)));
    await until(async () => (await operator.run(`audit --tenant ${tenant}`)).stdout.split('\n').length > 100);
    child.kill('SIGTSTP');
    await until(() => stderr() !== '');
    child.stdin?.end(textOf(facts.slice(200)));
    expect(await ended).toEqual([0, null]);
    expect(JSON.parse(stdout())).toMatchObject({ accepted: 400, refused: 0 });
    expect(stderr()).toMatch(/^Not suspended: .* Ctrl-C stops it; running it again continues\.\n$/);
  });

  it('does not suspend a server', async () => {
    const service = await serviceProcess();
    service.process.kill('SIGTSTP');
    await until(() => service.stderr().includes('not suspended'));
    expect((await rename(service, service.key, 'Written')).status).toBe(200);
    expect(await service.stop()).toBe(0);
  });
});
