import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monotonicMs } from '../../src/async/clock';
import { serversOf } from '../../src/event-log/eventstoredb/connection';
import { codeOf } from '../../src/fault';
import { followed, onStandIn, openOn, standIn } from '../support/event-store/logs';
import { storedLog } from '../support/event-store/stored-log';
import { eventsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { until } from '../support/waiting';

const failure = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => new Error('no failure'),
    (error: unknown) => error as Error,
  );

describe('a connection string', () => {
  it.each([
    ['esdb://127.0.0.1:2113?tls=false', '127.0.0.1:2113'],
    ['esdb://admin:changeit@es:2113', 'es:2113'],
    ['esdb+discover://admin:p%40ss@cluster.example.com/?nodePreference=leader', 'cluster.example.com'],
    ['esdb://a:1,b:2,c:3?tlsCAFile=/etc/ca.crt&keepAliveInterval=10000', 'a:1,b:2,c:3'],
  ])('%s is displayed as %s', (url, shown) => {
    expect(serversOf(url)).toBe(shown);
  });

  it.each([
    ['esdb://admin:top:secret@es:2113', 'percent-encoded'],
    ['esdb://admin:top@secret@es:2113', 'percent-encoded'],
    ['esdb://admin:topsecret@es:port', 'cannot parse it'],
    ['esdb://admin:topsecret@es:2113?tls=perhaps', 'cannot parse it'],
    ['esdb://admin:topsecret@es:2113?tlsCAFile=/not/there', 'a file that it names does not exist'],
  ])('%s is refused with a message that does not repeat it', async (url, words) => {
    const warned = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const error = await failure(openOn(url));
    expect(codeOf(error)).toBe('configuration_invalid');
    expect(error.message).toContain('EVENTSTORE_URL is not valid');
    expect(error.message).toContain(words);
    expect(error.message).not.toContain('secret');
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });
});

describe('a start', () => {
  it('waits for a server that is not up yet, and says so', async () => {
    const server = await standIn();
    await server.kill();
    const warnings: string[] = [];
    const opening = openOn(server.url, { warnings });
    await until(() => warnings.length > 0);
    await server.restart();
    const { log, aStream } = await opening;
    expect(warnings).toEqual([`Waiting for the event store at 127.0.0.1:${server.port}.`]);
    expect((await log.append(aStream(), someEvents(1), 'no_stream')).revision).toBe(0);
  });

  it.each(['gone', 'frozen'])('gives up in time, with a message, on a server that is %s', async (how) => {
    const server = await standIn();
    if (how === 'gone') await server.kill();
    else server.gate.freeze();
    const startedAt = monotonicMs();
    const error = await failure(openOn(server.url, { waitMs: 700 }));
    expect(codeOf(error)).toBe('log_unavailable');
    expect(error.message).toMatch(
      new RegExp(
        `^The event store at 127.0.0.1:${server.port} could not be reached within 1 s. Start it, or correct`,
      ),
    );
    expect(monotonicMs() - startedAt).toBeLessThan(5_000);
  });

  it('finds the leader of a cluster by gossip, even if a seed is dead', async () => {
    const shared = storedLog();
    const members = () => [
      { port: follower.port, isLeader: false },
      { port: leader.port, isLeader: true },
    ];
    const leader = await standIn({ log: shared, members });
    const follower = await standIn({ log: shared, members });
    const dead = await standIn();
    await dead.kill();
    const { log, aStream } = await openOn(
      `esdb://127.0.0.1:${dead.port},127.0.0.1:${follower.port}?tls=false&discoveryInterval=20`,
    );
    await log.append(aStream(), someEvents(1), 'no_stream');
    expect(leader.asked.append).toBe(2);
    expect(follower.asked.append).toBe(0);
    const { log: found } = await openOn(`esdb+discover://127.0.0.1:${follower.port}?tls=false`);
    expect(await found.head()).toBeUndefined();
  });

  it('survives finding no server of a cluster, and continues when it finds one', async () => {
    const server = await standIn();
    const options = 'tls=false&discoveryInterval=10&maxDiscoverAttempts=2';
    const url = `esdb://127.0.0.1:${server.port},127.0.0.1:${server.port}?${options}`;
    // In its own process, which an uncaught error would end.
    const { child, printed } = spawned(script(WRITING_ON), url);
    const ended = once(child, 'close');
    await until(() => printed() === 'written\n');
    await server.kill();
    await until(() => printed().endsWith('refused\n') || child.exitCode !== null);
    await server.restart();
    const [code] = (await ended) as [number | null];
    expect({ code, printed: printed().replaceAll('refused\n', '') }).toEqual({
      code: 0,
      printed: 'written\nwritten\nclosed\n',
    });
  });
});

const script = (work: string): string =>
  `const { eventStoreDbEventLog } = require(${JSON.stringify(require.resolve('../../src/event-log/eventstoredb/eventstoredb-event-log'))});
   const { streamNames } = require(${JSON.stringify(require.resolve('../../src/event-log/streams'))});
   const { randomUUID } = require('node:crypto');
   const streams = streamNames('exit.');
   const stream = streams.tenant(randomUUID());
   const event = () => ({ id: randomUUID(), type: 'X', data: {}, metadata: {} });
   eventStoreDbEventLog(process.argv[1], streams, { waitMs: 5000, onError: () => {} }).then(async (log) => { ${work}; console.log('closed'); });`;

const spawned = (work: string, url: string) => {
  const child = spawn(process.execPath, ['-e', work, url]);
  let printed = '';
  for (const output of [child.stdout, child.stderr]) output.on('data', (chunk) => (printed += String(chunk)));
  return { child, printed: () => printed };
};

/** Follows and writes until a write has succeeded, been refused, and succeeded again. */
const WRITING_ON = `
  let seen = 0;
  const following = (async () => { for await (const batch of log.readAll({ follow: true })) seen += batch.length; })();
  let refused = false;
  for (let done = 0; done < 2; ) {
    const said = await log.append(streams.tenant(randomUUID()), [event()], 'no_stream').then(() => 'written', () => 'refused');
    if (said === 'refused') refused = true;
    if (said === 'refused' || done === 0 || refused) console.log(said);
    if (said === 'written' && (done === 0 || refused)) done += 1;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  while (seen < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  await log.close();
  await following`;

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

/** A throwaway certificate authority, and the certificates it signs for 127.0.0.1. */
const madeUp = () => {
  const folder = freshFolder();
  const at = (name: string): string => join(folder, name);
  const run = (line: string): void =>
    void execFileSync('openssl', line.split(' '), { stdio: 'pipe', cwd: folder });
  const key = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes';
  run(`req -x509 ${key} -keyout ca.key -out ca.crt -subj /CN=Test -days 2`);
  run(`req ${key} -keyout key -out csr -subj /CN=node`);
  writeFileSync(at('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost');
  run('x509 -req -in csr -CA ca.crt -CAkey ca.key -CAcreateserial -out crt -days 2 -extfile names');
  return {
    authority: at('ca.crt'),
    tls: { key: readFileSync(at('key')), certificate: readFileSync(at('crt')) },
  };
};

(hasOpenssl ? describe : describe.skip)('a connection over TLS (skipped without openssl)', () => {
  const user = { name: 'admin', password: 'top:secret@1' };
  let made: ReturnType<typeof madeUp>;
  beforeAll(() => {
    made = madeUp();
  });

  const urlOf = (port: number, who: string): string =>
    `esdb://${who}127.0.0.1:${port}?tlsCAFile=${encodeURIComponent(made.authority)}`;

  it('works with a private authority and a user', async () => {
    const server = await standIn({ tls: made.tls, user });
    const { log, aStream } = await openOn(urlOf(server.port, `admin:${encodeURIComponent(user.password)}@`));
    const tail = followed(log);
    const stream = aStream();
    await log.append(stream, someEvents(2), 'no_stream');
    await until(() => tail.seen.length === 2);
    expect(await eventsOf(log.readStream(stream))).toHaveLength(2);
  });

  it.each([
    ['a wrong password', 'admin:wrong@'],
    ['no user', ''],
  ])('refuses %s at once, with a message that does not repeat it', async (_, who) => {
    const server = await standIn({ tls: made.tls, user });
    const startedAt = monotonicMs();
    const error = await failure(openOn(urlOf(server.port, who)));
    expect(error.message).toBe(
      'The event store refuses this user. Check the user and the password in EVENTSTORE_URL, and that the user may read $all, usually as a member of $admins.',
    );
    expect(codeOf(error)).toBe('log_unavailable');
    expect(monotonicMs() - startedAt).toBeLessThan(2_000);
  });

  it('does not trust a certificate of an unknown authority', async () => {
    const server = await standIn({ tls: made.tls });
    const error = await failure(openOn(`esdb://127.0.0.1:${server.port}`, { waitMs: 300 }));
    expect(codeOf(error)).toBe('log_unavailable');
    expect(error.message).toMatch(/certificate/);
  });
});

describe('a closed log', () => {
  it.each(['killed', 'frozen'])('closes in time even if its server is %s', async (how) => {
    const { log, server, aStream } = await onStandIn();
    const tail = followed(log);
    await log.append(aStream(), someEvents(1), 'no_stream');
    await until(() => tail.seen.length === 1);
    if (how === 'killed') await server.kill();
    else server.gate.freeze();
    const startedAt = monotonicMs();
    await log.close();
    expect(monotonicMs() - startedAt).toBeLessThan(1_500);
  });
});
