import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mongoConnection } from '../../src/mongodb/connection';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';
import { clustered } from '../support/profile';
import { command, spawnProgram, type Finished } from '../support/service';

let eventStore: StandIn;
beforeAll(async () => {
  eventStore = await startStandIn();
});
afterAll(() => eventStore.stop());

const PASSWORD = 'kept-to-ourselves';
const CREATE = ['tenant', 'create', '--name', 'Acme'];

/** Exits with code 1 and one sentence on stderr, and writes nothing to the folder. */
const refused = async (url: string, line = CREATE): Promise<Finished> => {
  const folder = freshFolder();
  const env = { ...clustered(eventStore.url), DATA_DIR: folder, MONGODB_URL: url };
  const ended = await command(line, env);
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(readdirSync(folder)).toEqual([]);
  expect(ended.stderr).not.toContain(PASSWORD);
  expect(ended.stderr.split('\n').length).toBe(2);
  return ended;
};

describeMongodb('a MONGODB_URL that does not work', () => {
  const collectionsOf = async (url: string): Promise<readonly string[]> => {
    const { db, close } = await mongoConnection(url, { waitMs: 0, onError: () => undefined });
    const found = await db.listCollections({}, { nameOnly: true }).toArray();
    await close();
    return found.map((collection) => collection.name).toSorted();
  };

  it('because the database belongs to another program, where nothing is written', async () => {
    const shop = mongodbUrl();
    const { db, close } = await mongoConnection(shop, { waitMs: 10_000, onError: () => undefined });
    await db.collection('orders').insertOne({ paid: true });
    await close();
    const { stderr } = await refused(shop);
    expect(stderr).toContain('[configuration_invalid]');
    expect(await collectionsOf(shop)).toEqual(['orders']);
  });

  it('because the database has read models of another ledger: with its own log, and without any', async () => {
    const ledger = mongodbUrl();
    const env = (prefix: string, database: string) => ({
      ...clustered(eventStore.url, undefined, prefix),
      DATA_DIR: freshFolder(),
      MONGODB_URL: database,
    });
    expect(await command(CREATE, env('first.', ledger))).toMatchObject({ code: 0 });
    const before = await collectionsOf(ledger);
    const none = await command(CREATE, env('second.', ledger));
    expect(none.stderr).toMatch(
      /There is no log .* but mongodb:\/\/.*\/test_[0-9a-f]+ has read models of one\. Check /,
    );
    expect(await command(CREATE, env('second.', mongodbUrl()))).toMatchObject({ code: 0 });
    const other = await command(CREATE, env('second.', ledger));
    for (const { code, stdout, stderr } of [none, other]) {
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain('[read_models_of_another_log]');
    }
    expect(await collectionsOf(ledger)).toEqual(before);
  });

  it('with an event store without a log: a command that creates nothing does not create one', async () => {
    const both = { ...clustered(eventStore.url, undefined, 'none.'), DATA_DIR: freshFolder() };
    const list = await command(['tenant', 'list'], both);
    expect(list).toMatchObject({ code: 1, stdout: '' });
    expect(list.stderr).toMatch(
      /There is no event log with STREAM_PREFIX="none\." in esdb:.*\[log_not_found\]/,
    );
    expect(await collectionsOf(both.MONGODB_URL)).toEqual([]);
    expect(await command(CREATE, both)).toMatchObject({ code: 0 });
    expect((await command(['tenant', 'list'], both)).stdout).toContain('Acme');
  });

  it('is waited for by a server, and for 5 s by a command', async () => {
    const env = {
      ...clustered(eventStore.url),
      DATA_DIR: freshFolder(),
      PORT: '0',
      OPS_PORT: '0',
      MONGODB_URL: `mongodb://user:${PASSWORD}@127.0.0.1:1/x`,
    };
    const server = spawnProgram(['serve'], env);
    let stderr = '';
    server.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const ended = await command(CREATE, env);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr.trim().split('\n').at(-1)).toMatch(
      /^tenant-ledger: MongoDB at 127\.0\.0\.1:1\/x could not be reached within 5 s\. /,
    );
    expect(stderr).toContain('Waiting for MongoDB at 127.0.0.1:1/x.');
    expect(server.exitCode).toBeNull();
    expect(`${ended.stderr}${stderr}`).not.toContain(PASSWORD);
    server.kill('SIGTERM');
    expect(await once(server, 'close')).toEqual([0, null]);
  });
});
