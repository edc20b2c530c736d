import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openApp } from '../src/app';
import { readConfiguration } from '../src/configuration';
import { freshFolder } from './support/folders';

const scratchIn = (folder: string): readonly string[] =>
  readdirSync(folder).filter((name) => name.startsWith('scratch-'));

describe('a scratch store', () => {
  it('is gone when it is removed, and so is what a killed process has left; others stay', async () => {
    const folder = freshFolder();
    const { pid: dead } = spawnSync(process.execPath, ['-e', '']);
    for (const owner of [dead, process.ppid])
      mkdirSync(join(folder, `scratch-${owner}-abc`, 'deep'), { recursive: true });
    const app = await openApp(readConfiguration({ DATA_DIR: folder }), () => undefined);
    const scratch = await app.scratch();
    expect(scratchIn(folder)).toHaveLength(2);
    expect(scratchIn(folder)).toContain(`scratch-${process.ppid}-abc`);
    await scratch.remove();
    expect(scratchIn(folder)).toEqual([`scratch-${process.ppid}-abc`]);
    await app.close();
  });
});
