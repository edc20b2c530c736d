import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { addressOf, mongoConnection } from '../../src/mongodb/connection';
import { messageReader, replyTo } from '../support/mongodb/wire';

const PASSWORD = 'kept-to-ourselves';

type Command = Readonly<Record<string, unknown>>;

const HELLO = {
  ok: 1,
  isWritablePrimary: true,
  minWireVersion: 0,
  maxWireVersion: 21,
  cursor: { id: 0n, ns: 'ledger.$cmd.listCollections', firstBatch: [] },
};

const serverThat = async (answer: (command: Command) => Command | undefined, port = 0) => {
  const server = createServer((socket) => {
    const messagesIn = messageReader();
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      for (const message of messagesIn(data)) {
        const response = answer(message.body);
        if (response !== undefined) socket.write(replyTo(message, response));
      }
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
};

describe('a connection to MongoDB', () => {
  let server: Server | undefined;
  afterEach(() => server?.close());

  const begin = async (...dependencies: Parameters<typeof serverThat>): Promise<number> => {
    const made = await serverThat(...dependencies);
    server = made.server;
    return made.port;
  };
  const open = (url: string, waitMs = 0, onError: (what: string) => void = () => undefined) =>
    mongoConnection(url, { waitMs, onError });

  it.each([
    ['mongodb://db1:27017,db2/ledger?replicaSet=rs', 'db1:27017,db2', 'ledger'],
    [`mongodb://user:${PASSWORD}@db/`, 'db', 'tenant_ledger'],
    ['mongodb+srv://user@cluster.example.com?w=1', 'cluster.example.com', 'tenant_ledger'],
  ])('names its servers and its database: %s', (url, servers, database) => {
    expect(addressOf(url)).toEqual({ servers, database });
  });

  it.each([
    'http://127.0.0.1:27017',
    'mongodb://',
    `mongodb://user:${PASSWORD}@`,
    `mongodb://user:${PASSWORD}@127.0.0.1:99999/`,
    `mongodb://user:a@${PASSWORD}@127.0.0.1/`,
    `mongodb://user:${PASSWORD}@127.0.0.1/a.b`,
    `mongodb://user:${PASSWORD}@127.0.0.1/a/b`,
    `mongodb://user:${PASSWORD}@127.0.0.1/ledger?reedConcern=majority`,
    'mongodb://127.0.0.1/ledger?tls=true&tlsCAFile=/nowhere/ca.pem',
    'mongodb://127.0.0.1/ledger?maxStalenessSeconds=90',
    'mongodb://127.0.0.1/ledger?readPreferenceTags=dc:east',
    'mongodb://127.0.0.1/ledger?compressors=zstd,snappy',
  ])('refuses an invalid address, and shows no password: %s', async (url) => {
    const error = await open(url, 20_000).catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringMatching(/^MONGODB_URL is not valid: .*For example: /),
    });
    expect((error as Error).message).not.toContain(PASSWORD);
  });

  it('uses the primary and majority concern, whatever the address says', async () => {
    const port = await begin(() => HELLO);
    const { db, place, close } = await open(
      `mongodb://127.0.0.1:${port}/ledger?w=1&journal=false&wtimeoutMS=5&readPreference=secondary&readConcernLevel=local`,
    );
    expect(db.readConcern?.level).toBe('majority');
    expect(db.writeConcern).toMatchObject({ w: 'majority', journal: true, wtimeoutMS: 0 });
    expect(db.readPreference?.mode).toBe('primary');
    expect([db.databaseName, place]).toEqual(['ledger', `127.0.0.1:${port}/ledger`]);
    await close();
  });

  it('reports that a server with authentication refuses an address without a user', async () => {
    const port = await begin((command) =>
      'listCollections' in command ? { ok: 0, code: 13, errmsg: 'requires authentication' } : HELLO,
    );
    await expect(open(`mongodb://127.0.0.1:${port}/ledger`, 60_000)).rejects.toMatchObject({
      code: 'read_models_unavailable',
      message: expect.stringMatching(/refuses this user\. .*without a user, it is refused/),
    });
  });

  it('recognises the plain error of a reset connection', async () => {
    const port = await begin(() => HELLO);
    const { run, close } = await open(`mongodb://127.0.0.1:${port}/ledger`);
    const reset = Object.assign(new Error('write ECONNRESET'), { code: 'ECONNRESET', syscall: 'write' });
    await expect(run(Promise.reject(reset))).rejects.toMatchObject({ code: 'read_models_unavailable' });
    const own = new Error('a bug');
    await expect(run(Promise.reject(own))).rejects.toBe(own);
    await close();
  });

  it('reports in one sentence that the server cannot be reached', async () => {
    const reports: string[] = [];
    const waiting = open(`mongodb://user:${PASSWORD}@127.0.0.1:1/ledger`, 1_500, (what) =>
      reports.push(what),
    );
    await expect(waiting).rejects.toMatchObject({
      code: 'read_models_unavailable',
      message: expect.stringMatching(
        /^MongoDB at 127\.0\.0\.1:1\/ledger could not be reached within 2 s\. Start it, or correct MONGODB_URL\. .*ECONNREFUSED/,
      ),
    });
    expect(reports).toEqual(['Waiting for MongoDB at 127.0.0.1:1/ledger.']);
  });

  it('waits for a server that starts later', async () => {
    const { server: former, port } = await serverThat(() => HELLO);
    former.close();
    await once(former, 'close');
    let comes: Promise<unknown> | undefined;
    const waiting = open(`mongodb://127.0.0.1:${port}/ledger`, 20_000, () => {
      comes ??= begin(() => HELLO, port);
    });
    await (await waiting).close();
    expect(comes).toBeDefined();
  });

  it('gives up on a server that never responds', async () => {
    const port = await begin(() => undefined);
    await expect(open(`mongodb://127.0.0.1:${port}/ledger`)).rejects.toMatchObject({
      code: 'read_models_unavailable',
      message: expect.stringMatching(/could not be reached within 0 s/),
    });
  });

  it('refuses a server that is too old, immediately', async () => {
    const port = await begin(() => ({ ...HELLO, maxWireVersion: 8 }));
    await expect(open(`mongodb://127.0.0.1:${port}/ledger`, 60_000)).rejects.toMatchObject({
      code: 'read_models_unavailable',
      message: `MongoDB at 127.0.0.1:${port}/ledger is too old. Version 4.4 or newer is needed.`,
    });
  });

  it.each([18, 13])('reports immediately that the user is refused with code %i', async (code) => {
    const port = await begin((command) =>
      'saslStart' in command ? { ok: 0, code, errmsg: `no ${PASSWORD}` } : HELLO,
    );
    const error = await open(`mongodb://user:${PASSWORD}@127.0.0.1:${port}/ledger`, 60_000).catch(
      (caught: unknown) => caught,
    );
    expect(error).toMatchObject({
      code: 'read_models_unavailable',
      message: expect.stringMatching(/refuses this user\. Check the user, the password and authSource/),
    });
    expect((error as Error).message).not.toContain(PASSWORD);
  });
});
