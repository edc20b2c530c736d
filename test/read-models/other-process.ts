import { holderName } from '../../src/read-models/lease-holder';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { createAndOpen } from '../support/generations';

/**
 * Another process on the same folder, for tests. `lease` takes the lease `work` and stays; `commit` adds to a counter
 * until it has won that many times.
 */
const [what, folder, times] = process.argv.slice(2) as [string, string, string];

const lease = async (): Promise<void> => {
  const readModels = sqliteReadModels(folder);
  const holder = holderName();
  if (!(await readModels.lease(['work'], holder)).has('work')) throw new Error('The lease is taken.');
  console.log(holder);
  setInterval(() => undefined, 60_000);
};

const commit = async (): Promise<void> => {
  const readModels = sqliteReadModels(folder);
  const id = { projection: 'counter', version: 1, generation: 'one' };
  const generation = await createAndOpen(readModels, id, [{ name: 'counts', indexes: {} }], 'log');
  console.log('ready');
  for (let won = 0; won < Number(times);) {
    const { n } = await generation.control();
    const before = (await generation.reader.get('tenant', 'counts', 'all')) ?? { count: 0 };
    const document = { count: (before['count'] as number) + 1 };
    const write = { tenantId: 'tenant', collection: 'counts', key: 'all', document };
    if (await generation.commit(n, undefined, [write])) won += 1;
  }
  await readModels.close();
};

void (what === 'lease' ? lease() : commit());
