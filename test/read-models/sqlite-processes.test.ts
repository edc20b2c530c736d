import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LiveSet } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { COLLECTIONS, LOG, ONE } from './contract/storage';

interface Advancing {
  readonly child: ChildProcess;
  readonly said: string[];
  readonly ended: Promise<unknown>;
}

describe('two processes on one folder', () => {
  let folder: string;
  const children: ChildProcess[] = [];
  const start = (times: number): Advancing => {
    const child = fork(join(__dirname, 'advancing-process.js'), [folder, String(times)], { execArgv: [] });
    children.push(child);
    const said: string[] = [];
    child.on('message', (message: string) => said.push(message));
    return { child, said, ended: once(child, 'close') };
  };
  const count = (all: readonly Advancing[], what: string): number =>
    all.flatMap(({ said }) => said).filter((said) => said === what).length;
  const open = () => sqliteReadModels({ folder, version: 'one', collections: COLLECTIONS });
  const found = async () => {
    const readModels = open();
    const { set, control } = (await readModels.live()) as LiveSet;
    const shown = await set.get(ONE, 'counts', 'n');
    await readModels.close();
    return { shown: Number(shown?.['count']), position: Number(control.to?.position) };
  };

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'processes-'));
    const readModels = open();
    const first = await readModels.create(LOG);
    await first.finish();
    expect(await readModels.succeed(first, undefined)).toBe(true);
    await readModels.close();
  });
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  it('commit exactly what they say, while they switch sets', async () => {
    const both = [start(200), start(200)];
    await Promise.all(both.map(({ ended }) => ended));
    const said = both.flatMap((one) => one.said);
    expect(said.filter((one) => one !== 'advanced' && one !== 'switched')).toEqual([]);
    expect(count(both, 'switched')).toBeGreaterThan(2);
    expect(await found()).toEqual({ shown: 400, position: 400 });
  });

  it('lose nothing that was committed when they are killed', async () => {
    let before = 0;
    for (let round = 0; round < 3; round += 1) {
      const both = [start(100_000), start(100_000)];
      while (count(both, 'advanced') < 60) await once(both[0]?.child as ChildProcess, 'message');
      for (const { child } of both) child.kill('SIGKILL');
      await Promise.all(both.map(({ ended }) => ended));
      const { shown, position } = await found();
      const said = count(both, 'advanced');
      expect(position).toBe(shown);
      expect(shown - before).toBeGreaterThanOrEqual(said);
      // Each may have committed something without having said so, and what it said may be lost on its way.
      before = shown;
    }
  });
});
