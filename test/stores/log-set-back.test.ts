import { copyFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openForWriting } from '../../src/sqlite/database';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { following } from '../support/following';
import { ask, type ApiResponse } from '../support/http';
import { clustered, EMBEDDED } from '../support/profile';
import { found, scrape } from '../support/metrics';
import { command, loggedBy, serviceProcess, startCommand, type Service } from '../support/service';
import { until } from '../support/waiting';

/** The log of a service under test, and how to set it back under the running service. */
interface Place {
  readonly env: Readonly<Record<string, string>>;
  /** Saves the current state. */
  keep(): void;
  /** Restores the saved state. */
  setBack(): Promise<void>;
  /** Appends events bypassing the service, until the log is longer than it was. */
  grow(): void;
  close(): Promise<void>;
}

const inStandIn = async (): Promise<Place> => {
  const store: StandIn = await startStandIn();
  let kept = 0;
  let before = 0;
  const data = Buffer.from('{}');
  return {
    env: { ...clustered(store.url), DATA_DIR: freshFolder() },
    keep: () => (kept = store.log.records.length),
    setBack: async () => {
      before = store.log.records.length;
      await store.kill();
      store.log.restore(kept);
      await store.restart();
    },
    grow: () => {
      while (store.log.records.length < before + 100)
        store.log.append('others', 'any', [
          { id: crypto.randomUUID(), type: 'X', contentType: 'application/json', data, metadata: data },
        ]);
    },
    close: () => store.stop(),
  };
};

const inFile = async (setBack: (path: string, copy: string) => void): Promise<Place> => {
  const folder = freshFolder();
  const path = join(folder, 'events.db');
  const copy = join(freshFolder(), 'events.db');
  const changed = (sql: string): void => {
    const db = openForWriting(path, 'FULL');
    db.exec(sql);
    db.close();
  };
  return {
    env: { DATA_DIR: folder, ...EMBEDDED },
    keep: () => {
      rmSync(copy, { force: true });
      changed(`VACUUM INTO '${copy}'`);
    },
    setBack: async () => setBack(path, copy),
    grow: () =>
      changed(
        `INSERT INTO events (position, stream, revision, id, type, data, metadata, recorded_at)
         SELECT position + 1000, 'other', position, 'x' || position, type, data, metadata, recorded_at FROM events`,
      ),
    close: async () => undefined,
  };
};

/** Like `sqlite3 events.db '.restore copy'`: the file stays, its content is replaced. */
const restoreInPlace = (path: string, copy: string): void => {
  const db = openForWriting(path, 'FULL');
  db.exec(`ATTACH '${copy}' AS copy; BEGIN IMMEDIATE; DELETE FROM events;
    INSERT INTO events SELECT * FROM copy.events; COMMIT; DETACH copy`);
  db.close();
};

const replaceFile = (path: string, copy: string): void => {
  copyFileSync(copy, `${path}.new`);
  for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
  renameSync(`${path}.new`, path);
};

const removeFiles = (path: string): void => {
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
};

const stopping: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stopping.splice(0).toReversed()) await stop();
});

const started = async (place: Place): Promise<Service> => {
  stopping.push(place.close);
  const service = await serviceProcess(place.env);
  stopping.push(service.stop);
  return service;
};

const rename = ({ url }: Service, key: string, name: string): Promise<ApiResponse> =>
  ask(`${url}/tenants/self`, { method: 'PUT', key, body: { name } });

const REASON = /^The event log was rolled back: .*projections rebuild/;

/** It ends by itself, and says why. Until then it acknowledges no write. */
const expectEnded = async (service: Service): Promise<void> => {
  expect(await service.ended).toBe(3);
  expect(loggedBy(service, '"level":60')).toEqual([
    expect.objectContaining({ msg: expect.stringMatching(REASON), exit_code: 3 }),
  ]);
};

/** A command that prints events until it is interrupted. */
const followingCommand = async (tenantId: string, env: Place['env']) => {
  const { stdout, stderr, done, signal } = startCommand(['audit', '--tenant', tenantId, '--follow'], env);
  await until(() => stdout() !== '');
  return { ended: done.then((code) => ({ code, stderr: stderr() })), printed: stdout, signal };
};

/** The next write notices it, once the store can be reached again. None is acknowledged. */
const expectNoticed = async (service: Service, key: string): Promise<void> => {
  const answers = new Set<number>();
  await until(async () => {
    const { status, json } = await rename(service, key, 'Never');
    answers.add(status);
    return json.code === 'log_set_back';
  });
  expect([...answers]).toEqual([503]);
};

interface Kind {
  readonly name: string;
  readonly open: () => Promise<Place>;
}
const kinds: readonly Kind[] = [
  { name: 'an event store restored from an older backup', open: inStandIn },
  { name: 'a file restored from an older copy', open: () => inFile(restoreInPlace) },
  { name: 'a file replaced by an older copy', open: () => inFile(replaceFile) },
];

interface Victim extends Kind {
  readonly place: Place;
  readonly key: string;
  service: Service;
}

/** Most of the time a log is in doubt, which takes seconds: all kinds are tested at the same time. */
describe('a running service whose log was rolled back', () => {
  const victims: Victim[] = [];
  const eachOf = async (work: (victim: Victim) => Promise<void>): Promise<void> => {
    const failures = await Promise.all(
      victims.map((victim) =>
        work(victim).then(
          () => [],
          (error: unknown) => [new Error(victim.name, { cause: error })],
        ),
      ),
    );
    for (const failure of failures.flat()) throw failure;
  };
  beforeAll(async () => {
    for (const kind of kinds) {
      const place = await kind.open();
      const service = await serviceProcess(place.env);
      victims.push({ ...kind, place, service, key: service.key });
    }
  });
  afterAll(() =>
    eachOf(async ({ service, place }) => {
      await service.stop();
      await place.close();
    }),
  );

  it('ends with the reason and its own exit code, and so do open event streams and commands that reconnect', () =>
    eachOf(async ({ service, key, place, open }) => {
      const stream = await following(`${service.url}/events?follow=true`, key);
      const { id } = (await ask(`${service.url}/tenants/self`, { key })).json as { id: string };
      const follower = await followingCommand(id, place.env);
      expect((await rename(service, key, 'Kept')).status).toBe(200);
      expect(found(await scrape(service), 'tenant_ledger_event_log_up')).toBe(1);
      place.keep();
      expect((await rename(service, key, 'Lost')).status).toBe(200);
      await until(() => stream.text().includes('Lost'));
      await until(() => follower.printed().includes('Lost'));
      await place.setBack();
      await expectNoticed(service, key);
      expect((await ask(`${service.operationsUrl}/readyz`)).status).toBe(503);
      await expectEnded(service);
      await stream.reading;
      const last = stream.text().trimEnd().split('\n').at(-1) ?? '';
      // On a busy machine, a restarted store may have been away for longer than a stream waits for it.
      const reason = expect.stringMatching(
        open === inStandIn ? /^log_(set_back|unavailable)$/ : /^log_set_back$/,
      );
      expect(JSON.parse(last)).toEqual({ end: { reason, position: expect.any(String) } });
      if (open !== inStandIn) follower.signal('SIGINT');
      expect(await follower.ended).toMatchObject(
        open === inStandIn
          ? { code: 3, stderr: expect.stringMatching(/The event log was rolled back.*\[log_set_back\]/s) }
          : { code: 0 },
      );
    }));

  it('has its log refused by commands, and works again after a rebuild and a restart', () =>
    eachOf(async (victim) => {
      const { env } = victim.place;
      for (const refused of await Promise.all(
        ['serve', 'status'].map((name) => command([name], { ...env, PORT: '0', OPS_PORT: '0' })),
      )) {
        expect(refused.code).toBe(3);
        expect(refused.stderr).toMatch(
          /The event log was rolled back: .*projections rebuild.*\[log_set_back\]/s,
        );
      }
      const rebuilt = await command(['projections', 'rebuild'], env);
      expect({ code: rebuilt.code, stderr: rebuilt.stderr }).toMatchObject({ code: 0 });
      victim.service = await serviceProcess(env);
      const read = await ask(`${victim.service.url}/tenants/self`, { key: victim.key });
      expect(read).toMatchObject({ status: 200, json: { name: 'Kept' } });
      expect((await command(['projections', 'verify'], env)).code).toBe(0);
    }));

  it('never acknowledges a write to it, however early it arrives', () =>
    eachOf(async ({ service, key, place }) => {
      place.keep();
      for (let i = 0; i < 3; i += 1) expect((await rename(service, key, `Lost ${i}`)).status).toBe(200);
      await place.setBack();
      await expectNoticed(service, key);
      await expectEnded(service);
    }));

  it('is refused at the next start, even after the log has grown past its former length', () =>
    eachOf(async ({ place }) => {
      place.grow();
      const refused = await command(['status'], place.env);
      expect(refused.code).toBe(3);
      expect(refused.stderr).toMatch(/(rolled back|scavenged).*projections rebuild.*\[log_set_back\]/s);
    }));
});

describe('a running service whose log file is gone', () => {
  it('ends', async () => {
    const place = await inFile(removeFiles);
    const service = await started(place);
    await place.setBack();
    expect((await rename(service, service.key, 'Never')).status).toBe(503);
    await expectEnded(service);
    expect(readdirSync(service.folder)).not.toContain('events.db');
  });
});

describe('a running service whose node was restored while nobody wrote', () => {
  it('ends when it has reconnected', async () => {
    const place = await inStandIn();
    const service = await started(place);
    place.keep();
    expect((await rename(service, service.key, 'Lost')).status).toBe(200);
    await place.setBack();
    await expectEnded(service);
  });
});

describe('a running service with a scavenged event', () => {
  it('keeps running; the next start is refused and says which event is missing', async () => {
    const store = await startStandIn();
    const env = { ...clustered(store.url), DATA_DIR: freshFolder() };
    const service = await started({
      env,
      keep: () => undefined,
      setBack: async () => undefined,
      grow: () => undefined,
      close: () => store.stop(),
    });
    await rename(service, service.key, 'Last');
    await until(() => store.log.records.at(-1)?.type === 'KeyUsed');
    const last = store.log.records.at(-1)!;
    const data = Buffer.from('{}');
    store.log.append('others', 'any', [
      { id: crypto.randomUUID(), type: 'X', contentType: 'application/json', data, metadata: data },
    ]);
    await until(async () => (await command(['status'], env)).code === 0);
    store.log.scavenge(last.id);
    expect((await ask(`${service.url}/tenants/self`, { key: service.key })).status).toBe(200);
    const refused = await command(['status'], env);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toMatch(
      new RegExp(`The event ${last.id} at .* is missing .* it was scavenged, or the log was rolled back`),
    );
  });
});
