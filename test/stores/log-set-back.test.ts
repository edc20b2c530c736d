import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { openForWriting } from '../../src/sqlite/database';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { following } from '../support/following';
import { ask, rename } from '../support/http';
import { found, scrape } from '../support/metrics';
import { clustered, EMBEDDED } from '../support/profile';
import { command, loggedBy, serviceProcess, startCommand, type Service } from '../support/service';
import { until } from '../support/waiting';

interface Place {
  readonly env: Readonly<Record<string, string>>;
  keep(): void;
  setBack(): Promise<void>;
  close(): Promise<void>;
}

const inStandIn = async (): Promise<Place> => {
  const store: StandIn = await startStandIn();
  let kept = 0;
  return {
    env: { ...clustered(store.url), DATA_DIR: freshFolder() },
    keep: () => (kept = store.log.records.length),
    setBack: async () => {
      await store.kill();
      store.log.restore(kept);
      await store.restart();
    },
    close: () => store.stop(),
  };
};

const inFile = async (): Promise<Place> => {
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
    setBack: async () => restoreInPlace(path, copy),
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

const REASON = /^The event log was rolled back: .*projections rebuild/;

/** It ends by itself, and says why. Until then it acknowledges no write. */
const expectEnded = async (service: Service): Promise<void> => {
  expect(await service.ended).toBe(3);
  expect(loggedBy(service, '"level":60')).toEqual([
    expect.objectContaining({ msg: expect.stringMatching(REASON), exit_code: 3 }),
  ]);
};

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
  { name: 'a file restored from an older copy', open: inFile },
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
});
