import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { backupAgeSeconds } from '../../src/app/backups';
import { readConfiguration } from '../../src/configuration';
import { freshFolder } from '../support/folders';

describe('the age of the last backup', () => {
  it.each([
    ['of an embedded log', ''],
    ['with an event store', 'esdb://localhost:2113'],
  ])('is unknown while the data folder cannot be read: %s', (_, url) => {
    const folder = join(freshFolder(), 'loop');
    symlinkSync(folder, folder);
    const configuration = { ...readConfiguration({ DATA_DIR: folder }), EVENTSTORE_URL: url };
    expect(backupAgeSeconds(configuration)).toBeUndefined();
  });
});
