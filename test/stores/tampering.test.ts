import { DatabaseSync } from '@photostructure/sqlite';
import { randomUUID } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startStandIn } from '../support/event-store/stand-in';
import { manyFacts, textOf } from '../support/facts';
import { freshFolder } from '../support/folders';
import { describeMongodb } from '../support/mongodb/databases';
import { clustered, EMBEDDED } from '../support/profile';
import { seed, seeded } from '../support/property';
import { randomFrom } from '../support/random';
import { command, type Finished } from '../support/service';

/** `npm run campaign -- tampering` tries each way a hundred times. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 2);
const EVENTS = 40;
const SECRET = 'a secret of the tests, long enough for all';

interface Place {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
}

/** The log of a folder that no server uses, as somebody changes it who may write all of its files. */
const logOf = (folder: string, tenantId: string) => {
  const db = new DatabaseSync(join(folder, 'events.db'));
  const all = (): readonly Place[] =>
    db
      .prepare('SELECT position, stream, revision FROM events WHERE stream LIKE ? ORDER BY position')
      .all(`%-${tenantId}`);
  const move = (
    by: number,
    field: 'position' | 'revision',
    where: string,
    ...values: (string | number)[]
  ) => {
    const sign = field === 'position' ? -1 : -1_000_000;
    db.prepare(`UPDATE events SET ${field} = ${sign} * (${field} + ?) WHERE ${where}`).run(by, ...values);
    db.exec(`UPDATE events SET ${field} = ${field} / ${sign} WHERE ${field} < 0`);
  };
  const swap = (one: Place, other: Place): void => {
    const read = db.prepare('SELECT id, type, data, metadata, recorded_at FROM events WHERE position = ?');
    const write = db.prepare(
      'UPDATE events SET id = ?, type = ?, data = ?, metadata = ?, recorded_at = ? WHERE position = ?',
    );
    const rows = [one, other].map(({ position }) => Object.values(read.get(position) as object) as string[]);
    write.run(...rows[1]!, one.position);
    write.run(...rows[0]!, other.position);
  };
  return { db, all, move, swap };
};

type Log = ReturnType<typeof logOf>;

const set = (assignment: string) => (log: Log, at: Place) =>
  log.db.prepare(`UPDATE events SET ${assignment} WHERE position = ?`).run(at.position);

/** The ways to change a log at one of the events of a tenant's activity, all of them so that it stays readable. */
const ways: Readonly<Record<string, (log: Log, at: Place, next: Place) => unknown>> = {
  'the data of an event': set(`data = json_set(data, '$.entityId', 'another')`),
  'a new member in its data': set(`data = json_set(data, '$.note', 1)`),
  'its metadata': set(`metadata = json_set(metadata, '$.traceId', 'another')`),
  'its id': set(`id = '${randomUUID()}'`),
  'its type': set(`type = CASE type WHEN 'CardRead' THEN 'CardUsed' ELSE 'CardRead' END`),
  'its time': set('recorded_at = recorded_at + 1'),
  'an event removed': (log, { position, stream, revision }) => {
    log.db.prepare('DELETE FROM events WHERE position = ?').run(position);
    log.move(-1, 'revision', 'stream = ? AND revision > ?', stream, revision);
  },
  'an event inserted': (log, { position, stream, revision }) => {
    log.move(1, 'position', 'position >= ?', position);
    log.move(1, 'revision', 'stream = ? AND revision >= ?', stream, revision);
    log.db
      .prepare(
        `INSERT INTO events (position, stream, revision, id, type, data, metadata, recorded_at)
         SELECT ?, stream, ?, ?, type, data, metadata, recorded_at FROM events WHERE position = ?`,
      )
      .run(position, revision, randomUUID(), position + 1);
  },
  'two events swapped': (log, at, next) => log.swap(at, next),
  'the last events removed': (log) =>
    log.db.prepare('DELETE FROM events WHERE position = ?').run(log.all().at(-1)!.position),
};

describe('a log that somebody has changed', () => {
  const env = { ...EMBEDDED, SECRET };
  const original = freshFolder();
  const kept = join(freshFolder(), 'kept');
  const random = randomFrom(seed);
  let tenantId = '';
  let key = '';

  const run = (folder: string, ...args: readonly string[]): Promise<Finished> =>
    command(args, { ...env, DATA_DIR: folder });
  const ok = async (folder: string, ...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(folder, ...args);
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
    return stdout;
  };
  const exported = async (folder: string): Promise<string> => {
    const file = join(freshFolder(), 'export.ndjson');
    writeFileSync(file, await ok(folder, 'audit', '--tenant', tenantId));
    return file;
  };
  const verify = (file: string, checkpoint: string) =>
    run(original, 'evidence', 'verify', file, '--checkpoint', checkpoint, '--key', key, '--json');
  const keptFile = () => join(kept, readdirSync(kept)[0]!);
  const fill = async (folder: string, facts: string): Promise<void> => {
    const { code } = await command(['ingest'], { ...env, DATA_DIR: folder }, facts);
    expect(code).toBe(0);
  };

  beforeAll(async () => {
    const made = JSON.parse(await ok(original, 'tenant', 'create', '--name', 'Audited', '--json')) as object;
    tenantId = (made as { readonly tenant_id: string }).tenant_id;
    await fill(original, textOf(manyFacts([tenantId], EVENTS, seed)));
    await ok(original, 'evidence', 'checkpoints', '--output', kept);
    key = (await ok(original, 'evidence', 'key', '--tenant', tenantId)).trim();
  });

  const copyOf = async (change: (log: Log, folder: string) => unknown): Promise<string> => {
    const folder = freshFolder();
    cpSync(original, folder, { recursive: true });
    const log = logOf(folder, tenantId);
    change(log, folder);
    log.db.close();
    rmSync(join(folder, 'read-models'), { recursive: true });
    await ok(folder, 'projections', 'rebuild');
    return folder;
  };
  /** The exit codes of a new checkpoint over the kept one, and of a new export with the kept checkpoint. */
  const judged = async (folder: string) => {
    const output = join(freshFolder(), 'again');
    cpSync(kept, output, { recursive: true });
    const before = readFileSync(keptFile(), 'utf8');
    const { code, stderr } = await run(folder, 'evidence', 'checkpoints', '--output', output);
    const after = readFileSync(join(output, readdirSync(output)[0]!), 'utf8');
    if (code === 4) expect([after, stderr]).toEqual([before, expect.stringContaining(tenantId)]);
    return [code, (await verify(await exported(folder), keptFile())).code];
  };

  it('is proven as long as nobody has', async () => {
    expect((await verify(await exported(original), keptFile())).code).toBe(0);
    const same = await copyOf(() => undefined);
    expect(await judged(same)).toEqual([0, 0]);
    await fill(same, textOf(manyFacts([tenantId], 3, seed + 1)));
    const { code, stdout } = await verify(await exported(same), keptFile());
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { proven: EVENTS + 1, not_yet_proven: 3 }]);
    expect(await judged(same)).toEqual([0, 0]);
  });

  describe('or that was moved', () => {
    const checkpointIn = async (folder: string, stores: Readonly<Record<string, string>> = {}) => {
      const output = join(freshFolder(), 'moved');
      const at = { ...env, ...stores, DATA_DIR: folder };
      const { code, stderr } = await command(['evidence', 'checkpoints', '--output', output], at);
      expect([code, stderr]).toEqual([0, '']);
      return readFileSync(join(output, readdirSync(output)[0]!), 'utf8');
    };

    it('has the same checkpoint in a copy, and after a backup was restored', async () => {
      const [copy, backup, restored] = [freshFolder(), join(freshFolder(), 'backup'), freshFolder()];
      await ok(original, 'log', 'copy', '--from', 'configured', '--to', copy);
      await ok(original, 'backup', 'create', backup);
      await ok(restored, 'backup', 'restore', backup);
      const before = readFileSync(keptFile(), 'utf8');
      expect([await checkpointIn(copy), await checkpointIn(restored)]).toEqual([before, before]);
    });

    describeMongodb('to an event store and MongoDB', () => {
      it('has the same checkpoint there', async () => {
        const store = await startStandIn();
        await ok(original, 'log', 'copy', '--from', 'configured', '--to', store.url);
        const there = await checkpointIn(freshFolder(), clustered(store.url, undefined, ''));
        expect(there).toBe(readFileSync(keptFile(), 'utf8'));
        await store.stop();
      });
    });
  });

  it.each(Object.entries(ways))(seeded('contradicts the checkpoint that was kept: %s'), async (_, change) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const changed = await copyOf((log) => {
        const facts = log.all().filter(({ stream }) => stream.includes('activity'));
        const at = Math.floor(random() * (facts.length - 1));
        change(log, facts[at]!, facts[at + 1]!);
      });
      expect(await judged(changed)).toEqual([4, 4]);
    }
  });

  it('contradicts it if it is another one that is consistent in itself', async () => {
    const other = freshFolder();
    await ok(other, 'tenant', 'create', '--name', 'Audited', '--id', tenantId);
    await fill(other, textOf(manyFacts([tenantId], 2 * EVENTS, seed + 2)));
    expect(await judged(other)).toEqual([4, 4]);
  });
});
