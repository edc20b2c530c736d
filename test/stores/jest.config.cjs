const { join } = require('node:path');
const { jest } = require('../../package.json');

const rootDir = join(__dirname, '..', '..');
const { roots, globalSetup, globalTeardown, testEnvironment, sandboxInjectedGlobals, transform } = jest;
const project = {
  rootDir,
  roots,
  globalSetup,
  globalTeardown,
  testEnvironment,
  sandboxInjectedGlobals,
  transform,
};

/** What `npm run test:stores` runs: the tests of this folder, and those of the API once more on an event store and MongoDB. */
module.exports = {
  rootDir,
  testTimeout: jest.testTimeout,
  testSequencer: jest.testSequencer,
  projects: [
    {
      ...project,
      roots: ['<rootDir>/dist/test/stores'],
      testPathIgnorePatterns: ['round-trips'],
    },
    {
      ...project,
      testEnvironmentOptions: { profile: 'clustered' },
      testRegex: [
        'dist/test/stores/round-trips\\.test\\.js$',
        'dist/test/projections/.*\\.test\\.js$',
        'dist/test/http/(tenants|permissions|reports|idempotency|logs|applications|cross-cutting|events)\\.test\\.js$',
        'dist/test/audit/.*\\.test\\.js$',
        'dist/test/cli/audit\\.test\\.js$',
        'dist/test/docs/investigations\\.test\\.js$',
      ],
    },
  ],
};
