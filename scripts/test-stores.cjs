// `npm run test:stores`: the files that measure one at a time, then the others two at a time. Arguments go to Jest.
const { spawnSync } = require('node:child_process');

const config = ['--config', 'test/stores/jest.config.cjs', '--passWithNoTests'];

const jest = (projects, workers) => {
  const args = [...config, '--selectProjects', ...projects, `--maxWorkers=${workers}`];
  args.push(...process.argv.slice(2));
  const { status } = spawnSync(process.execPath, [require.resolve('jest/bin/jest'), ...args], {
    stdio: 'inherit',
  });
  return status ?? 1;
};

process.exitCode = Math.max(jest(['measured'], 1), jest(['stores', 'clustered'], 2));
