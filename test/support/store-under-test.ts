import type { Collection } from '../../projections/projector';
import type { ReadModels } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { freshFolder } from './folders';
import { openMongodb } from './mongodb-under-test';
import { isClustered } from './profile';

interface Kind {
  readonly version: string;
  readonly collections: readonly Collection[];
}

/** Read models in the store of the profile under test, at a fresh place if none is named. The caller closes them. */
export const storeUnderTest = async (
  { version, collections }: Kind,
  place = freshFolder(),
): Promise<ReadModels> =>
  isClustered
    ? openMongodb(place, { version, collections })
    : sqliteReadModels({ folder: place, version, collections });
