import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';
import { stuckReadModels } from '../support/stuck';

it('a write that the read models cannot store is still made, and the command reports both', async () => {
  const operator = operatorAt(freshFolder());
  const { tenant_id: tenant } = await operator.json('tenant create --name Acme');
  const { application_id: application } = await operator.json(
    `application create --tenant ${tenant} --name Desk --type management`,
  );
  const stuck = stuckReadModels(operator.folder);
  const { code, stdout, stderr } = await operator.run(
    `key create --tenant ${tenant} --application ${application} --json`,
  );
  stuck.release();
  expect(stderr).toContain('The change is made');
  expect(code).toBe(0);
  const { key_id } = JSON.parse(stdout) as { key_id: string };
  const keys = await operator.json<{ key_id: string }[]>(`key list --tenant ${tenant}`);
  expect(keys.map((listedKey) => listedKey.key_id)).toContain(key_id);
});
