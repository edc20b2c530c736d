import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');

/** Loading these takes longer than everything else that a help or an explanation needs. */
const HEAVY = ['ajv', 'koa', 'mongodb', 'pino', 'prom-client', '@eventstore', '@photostructure'];

const loadedBy = (...args: readonly string[]): readonly string[] => {
  const script = `
    const { main } = require(${JSON.stringify(MAIN)});
    process.stdout.write = () => true;
    main(['node', 'tenant-ledger', ...${JSON.stringify(args)}], process).then(() =>
      process.stderr.write(JSON.stringify(Object.keys(require.cache))));`;
  const { stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  const files = JSON.parse(stderr) as readonly string[];
  return HEAVY.filter((name) => files.some((file) => file.includes(join('node_modules', name))));
};

describe('a command', () => {
  it.each([['--help'], ['audit --help'], ['--version'], ['explain key_refused'], ['tenant list --help']])(
    'loads only what it needs: %s',
    (line) => {
      expect(loadedBy(...line.split(' '))).toEqual([]);
    },
  );

  it('loads what it works with when it runs', () => {
    expect(loadedBy('doctor')).toContain('@photostructure');
  });
});
