import { mongodbReadModels } from '../../../src/read-models/mongodb/mongodb-read-models';
import type { ReadModels, ReadModelSet } from '../../../src/read-models/read-models';
import { COLLECTIONS, LOG } from '../../read-models/contract/storage';
import { closeAfterwards } from '../closing';
import { connectMongodb } from '../mongodb-under-test';

export const openAt = async (url: string, options: { graceMs?: number; leaseMs?: number } = {}) => {
  const connection = await connectMongodb(url);
  closeAfterwards(connection.close);
  const readModels = await mongodbReadModels(connection, {
    version: 'v1',
    collections: COLLECTIONS,
    ...options,
  });
  closeAfterwards(readModels.close);
  return readModels;
};

export const firstSet = async (readModels: ReadModels): Promise<ReadModelSet> => {
  const set = await readModels.create(LOG);
  await set.finish();
  expect(await readModels.succeed(set, undefined)).toBe(true);
  return set;
};
