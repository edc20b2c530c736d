import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import { appendToEnd, parsedJson, type EventLog } from '../../src/event-log/event-log';
import type { Streams } from '../../src/event-log/streams';
import { anEvent } from '../support/events';
import { freshFolder } from '../support/folders';
import { operatorAt } from '../support/operator';
import { openLogIn } from '../support/profile';
import { spawnProgram, startCommand } from '../support/service';
import { until } from '../support/waiting';

interface Line {
  readonly id: string;
  readonly position: string;
}

describe('tenant-ledger audit --follow --output', () => {
  const folder = freshFolder();
  const operator = operatorAt(folder);
  let tenant: string;
  let log: EventLog;
  let streams: Streams;
  beforeAll(async () => {
    tenant = (await operator.json('tenant create --name Acme'))['tenant_id'] ?? '';
    ({ log, streams } = await openLogIn(folder));
  });
  afterAll(() => log.close());

  const appendFact = async (): Promise<string> => {
    const event = anEvent({ entityId: 'tok_1', note: 'x'.repeat(2_000) }, { type: 'TokenRead' });
    await appendToEnd(log, streams.activity(tenant), [event]);
    return event.id;
  };

  const given = () => {
    const [output, cursorFile] = ['audit.ndjson', 'audit.cursor'].map((name) => join(freshFolder(), name));
    const files = { output: output as string, cursorFile: cursorFile as string };
    const args = ['audit', '--follow', '--output', files.output, '--cursor-file', files.cursorFile];
    const texts = () => (existsSync(files.output) ? readFileSync(files.output, 'utf8').split('\n') : []);
    return {
      ...files,
      args,
      texts,
      lines: () => texts().flatMap((text) => (parsedJson(text) as Line | undefined) ?? []),
      ids: (): ReadonlySet<string> =>
        new Set(texts().flatMap((text) => (parsedJson(text) as Line | undefined)?.id ?? [])),
      cursor: () =>
        existsSync(files.cursorFile)
          ? (JSON.parse(readFileSync(files.cursorFile, 'utf8')) as { log: string; position: string })
          : undefined,
      start: () => startCommand(args, { DATA_DIR: folder }),
    };
  };

  it('has every event at least once, wherever it was killed, and the cursor never runs ahead', async () => {
    const { args, cursor, ids, lines, texts } = given();
    const written: Line[] = [];
    let isEnding = false;
    const writing = (async () => {
      for (; !isEnding; await pause(1)) {
        const id = await appendFact();
        written.push({ id, position: (await log.head())?.position ?? '' });
      }
    })();
    for (const ms of [0, 40, 120, 250, 320, 500]) {
      const child = spawnProgram(args, { DATA_DIR: folder });
      const before = lines().length;
      await until(() => lines().length > before);
      await pause(ms);
      child.kill('SIGKILL');
      await once(child, 'close');
      const position = cursor()?.position ?? '';
      const covered = written.filter((event) => event.position <= position);
      const inFile = ids();
      expect(covered.filter(({ id }) => !inFile.has(id))).toEqual([]);
    }
    isEnding = true;
    await writing;
    const last = spawnProgram(args, { DATA_DIR: folder });
    await until(() => cursor()?.position === written.at(-1)?.position);
    last.kill('SIGTERM');
    expect(await once(last, 'close')).toEqual([0, null]);
    const inFile = ids();
    expect(written.filter(({ id }) => !inFile.has(id))).toEqual([]);
    // At most one line that is cut off for each kill, and an empty text after the last line.
    expect(texts().length - lines().length).toBeLessThanOrEqual(6 + 1);
    expect(texts().at(-1)).toBe('');
  });

  it('continues after a line that was cut off, and in a new file after another program has moved it', async () => {
    const { output, start, texts, ids, cursor } = given();
    writeFileSync(output, '{"id":"cut o');
    const running = start();
    const first = await appendFact();
    await until(() => ids().has(first));
    expect(texts()[0]).toBe('{"id":"cut o');
    renameSync(output, `${output}.1`);
    const second = await appendFact();
    await until(() => ids().has(second));
    expect(ids().size).toBe(1);
    running.signal('SIGTERM');
    expect([await running.done, running.stdout()]).toEqual([0, '']);
    expect(running.stderr()).toBe('To continue, run the same command again.\n');
    expect(cursor()).toEqual({ log: await log.identity(), position: (await log.head())?.position });
  });

  it('has only what meets the conditions, and continues from where it has read', async () => {
    const { args, lines, cursor } = given();
    for (const _ of ['from the start', 'from the cursor']) {
      await appendFact();
      const running = startCommand([...args, '--type', 'TenantCreated'], { DATA_DIR: folder });
      const position = (await log.head())?.position;
      await until(() => cursor()?.position === position);
      running.signal('SIGINT');
      expect(await running.done).toBe(0);
      expect(lines()).toMatchObject([{ type: 'TenantCreated' }]);
    }
  });

  it('refuses a cursor that is none or of another log, and a position that is not reached', async () => {
    const { cursorFile, start } = given();
    const refusals: readonly (readonly [string, string])[] = [
      ['no cursor', 'is no cursor file'],
      [JSON.stringify({ log: randomUUID(), position: '0000000000000001' }), 'belongs to the log'],
      [
        JSON.stringify({ log: await log.identity(), position: '9'.repeat(16) }),
        'is not a position of this log',
      ],
    ];
    for (const [text, says] of refusals) {
      writeFileSync(cursorFile, text);
      const running = start();
      expect([await running.done, running.stdout()]).toEqual([2, '']);
      expect(running.stderr()).toContain(says);
    }
  });

  it('says that the output cannot be written', async () => {
    const { cursorFile } = given();
    const output = join(freshFolder(), 'no', 'such', 'folder');
    const line = `audit --follow --output ${output} --cursor-file ${cursorFile}`;
    const { code, stderr } = await operator.run(line);
    expect([code, stderr]).toEqual([1, expect.stringContaining('[output_failed]')]);
    expect(existsSync(cursorFile)).toBe(false);
  });

  it.each([
    'audit --follow --output a',
    'audit --follow --cursor-file a',
    'audit --output a --cursor-file b',
    'audit --follow --output a --cursor-file a',
    'audit --follow --output a --cursor-file b --limit 1',
  ])('is refused as %s', async (line) => {
    expect(await operator.run(line)).toMatchObject({ code: 2, stdout: '' });
  });
});
