import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream, openSync, statSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Trailer } from '../../src/audit/export';
import { fillBusyLog } from '../support/busy-log';
import { freshFolder } from '../support/folders';
import { openLogIn } from '../support/profile';
import { command, spawnProgram } from '../support/service';

/** Several chunks; `npm run campaign -- audit` sets a million. */
const EVENTS = Number(process.env['EVENTS'] ?? 1_500);
const AT = Math.floor(EVENTS * 0.7);
const MINUTES = 60_000;

type Tamper = (line: string, index: number) => readonly string[];

const idIn = (line: string): string => /"id":"([^"]+)"/.exec(line)?.[1] ?? '';

/** Writes an altered copy whose trailer matches the altered lines: only the log can tell. */
const tampered = async (file: string, tamper: Tamper): Promise<string> => {
  const copy = `${file}-tampered`;
  const out = createWriteStream(copy);
  const hash = createHash('sha256');
  let [index, events] = [0, 0];
  const write = async (text: string): Promise<void> => {
    if (!out.write(text)) await once(out, 'drain');
  };
  for await (const line of createInterface({ input: createReadStream(file) })) {
    if (line.startsWith('{"trailer"')) {
      const { trailer } = JSON.parse(line) as { trailer: Trailer };
      await write(`${JSON.stringify({ trailer: { ...trailer, events, sha256: hash.digest('hex') } })}\n`);
      continue;
    }
    for (const changed of tamper(line, index)) {
      hash.update(`${changed}\n`);
      events += 1;
      await write(`${changed}\n`);
    }
    index += 1;
  }
  out.end();
  await once(out, 'close');
  return copy;
};

describe(`an export of ${EVENTS} events`, () => {
  const env = { DATA_DIR: freshFolder() };
  const file = join(env.DATA_DIR, 'export.ndjson');
  let id = '';
  beforeAll(async () => {
    const ledgerLog = await openLogIn(env.DATA_DIR);
    await fillBusyLog(ledgerLog, EVENTS, 500);
    await ledgerLog.log.close();
    const out = openSync(file, 'w');
    const [code] = (await once(spawnProgram(['audit'], env, undefined, out), 'close')) as [number];
    expect(code).toBe(0);
    let index = 0;
    for await (const line of createInterface({ input: createReadStream(file) })) {
      if (index === AT) id = idIn(line);
      index += 1;
    }
    expect(index).toBe(EVENTS + 1);
  }, 10 * MINUTES);

  const check = (what: string) => command(['audit', 'check', what], env);

  it(
    'is confirmed as complete and unaltered',
    async () => {
      const { code, stdout } = await check(file);
      expect(code).toBe(0);
      expect(stdout).toContain(`is unaltered: ${EVENTS} events`);
      expect(statSync(file).size).toBeGreaterThan(EVENTS * 100);
    },
    10 * MINUTES,
  );

  const stranger = randomUUID();
  let held = '';
  const cases: readonly (readonly [string, Tamper])[] = [
    ['altered', (line, at) => [at === AT ? line.replace('"tok_', '"TOK_') : line]],
    ['removed', (line, at) => (at === AT ? [] : [line])],
    ['added', (line, at) => (at === AT ? [line.replace(idIn(line), stranger), line] : [line])],
    [
      'reordered',
      (line, at) => {
        if (at === AT) held = line;
        return at === AT ? [] : at === AT + 1 ? [line, held] : [line];
      },
    ],
  ];
  it.each(cases)(
    'is detected as altered if a line was %s, even if the trailer matches',
    async (_, tamper) => {
      const { code, stdout, stderr } = await check(await tampered(file, tamper));
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain(`differs from the log in line ${AT + 1}: the log has event ${id} there.`);
    },
    10 * MINUTES,
  );
});
