import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lineWriter } from '../../src/app/line-writer';
import { freshFolder } from '../support/folders';
import { until } from '../support/waiting';

describe('lines written without waiting', () => {
  it('continue after more arrived at once than is buffered', async () => {
    const path = join(freshFolder(), 'log');
    const fd = openSync(path, 'w');
    const { write } = lineWriter(fd, (count) => `lost ${count}\n`);
    const written = (): string => readFileSync(path, 'utf8');
    write('one\n');
    write(`${'x'.repeat(1_048_576)}\n`);
    write('two\n');
    await until(() => written().includes('lost 2'));
    write('three\n');
    expect(written()).toBe('one\nlost 2\nthree\n');
    closeSync(fd);
  });
});
