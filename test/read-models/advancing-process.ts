import type { ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { COLLECTIONS, LOG, ONE, at, put } from './contract/storage';

const COUNT = { tenantId: ONE, collection: 'counts', key: 'n' };

/** Adds one to the number of the live set, and says so once it is committed. */
const increase = async (set: ReadModelSet): Promise<boolean> => {
  const outcome = await set.advance(async ({ to }) => {
    const [document] = await set.load([COUNT]);
    const count = Number(document?.['count'] ?? 0) + 1;
    if (Number(to?.position ?? 0) + 1 !== count) throw new Error('The position and the number differ.');
    return { to: at(count), writes: [put(ONE, 'counts', 'n', { count })], parked: 0 };
  });
  return outcome === 'done';
};

/** Builds a set, and follows the live one until it takes its place or another one did. */
const replace = async (readModels: ReadModels): Promise<void> => {
  const former = (await readModels.live())?.set;
  if (former === undefined) return;
  const built = await readModels.create(LOG);
  await built.finish();
  for (let isNamed = false; !isNamed;) {
    const { next, to } = await former.control();
    if (next !== undefined) return;
    const count = Number(to?.position ?? 0);
    const writes = [put(ONE, 'counts', 'n', { count })];
    await built.advance(async () => ({ to: at(count), writes, parked: 0 }));
    isNamed = await readModels.succeed(built, former);
  }
  process.send?.('switched');
};

const run = async (folder: string, times: number): Promise<void> => {
  const readModels = sqliteReadModels({ folder, version: 'one', collections: COLLECTIONS });
  for (let done = 0; done < times;) {
    const live = await readModels.live();
    if (live !== undefined && (await increase(live.set))) {
      done += 1;
      process.send?.('advanced');
    }
    if (done % 25 === 0) await replace(readModels);
    // Whoever holds the lock again and again must leave it to the other process.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await readModels.close();
};

const [folder, times] = process.argv.slice(2);
if (folder !== undefined)
  run(folder, Number(times)).then(
    () => process.disconnect(),
    (error: unknown) => {
      process.send?.(String(error));
      process.exitCode = 1;
      process.disconnect();
    },
  );
