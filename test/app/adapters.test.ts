import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openLog } from '../../src/app/adapters';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { startStandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';

const quiet = (): void => undefined;

describe('an event log named by its address', () => {
  it('is the one in a data folder, named with or without its kind', async () => {
    const folder = freshFolder();
    const identities = new Set<string>();
    await (await sqliteEventLog(folder, streamNames())).close();
    for (const address of [folder, `sqlite:${folder}`]) {
      const log = await openLog(address, streamNames(), 'source', quiet);
      identities.add(await log.identity());
      await log.close();
    }
    expect(identities.size).toBe(1);
  });

  it('must exist to be copied from, and is not created by opening it to read', async () => {
    const nowhere = join(freshFolder(), 'nowhere');
    await expect(openLog(nowhere, streamNames(), 'source', quiet)).rejects.toMatchObject({
      code: 'log_not_found',
      message: `There is no event log in the folder ${nowhere}.`,
    });
    expect(existsSync(nowhere)).toBe(false);
  });

  it('is not created in an event store by opening it to read either', async () => {
    const store = await startStandIn();
    try {
      await expect(openLog(store.url, streamNames('other.'), 'source', quiet)).rejects.toMatchObject({
        code: 'log_not_found',
        message: `There is no event log with the prefix "other." in ${store.url}.`,
      });
      expect(store.log.records.filter(({ stream }) => stream.startsWith('other.'))).toEqual([]);
    } finally {
      await store.stop();
    }
  });

  it.each(['', 'sqlite:', 'mysql:x', 'postgres://me:hunter2@db/x', 'http://localhost'])(
    'is refused if the address is not valid: "%s"',
    async (address) => {
      const error = await openLog(address, streamNames(), 'target', quiet).catch(
        (reason: unknown) => reason as Error,
      );
      expect(error).toMatchObject({
        code: 'log_not_found',
        message: expect.stringContaining('is not the address of an event log'),
      });
      expect((error as Error).message).not.toContain('hunter2');
    },
  );

  it('is refused if the address is a file', async () => {
    const file = join(freshFolder(), 'file');
    writeFileSync(file, '');
    await expect(openLog(file, streamNames(), 'target', quiet)).rejects.toMatchObject({
      code: 'data_dir_unusable',
      message: expect.stringContaining(`The folder ${file} `),
    });
  });
});
