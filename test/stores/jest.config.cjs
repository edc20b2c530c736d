const { join } = require('node:path');
const { jest } = require('../../package.json');

const rootDir = join(__dirname, '..', '..');
const { globalSetup, globalTeardown, testEnvironment, sandboxInjectedGlobals, transform } = jest;
const project = { rootDir, globalSetup, globalTeardown, testEnvironment, sandboxInjectedGlobals, transform };
const stores = { ...project, roots: ['<rootDir>/dist/test/stores'] };

/** They compare times, so nothing else may run beside them. */
const MEASURED =
  '/(clustered-neighbours|documented-times|event-loop|instances|large-tenants|limits-under-load|open-transactions|revoked-keys|start|status-away|stores-away|portal/first-page)\\.test\\.js$';

/** In which `clustered` runs once more: the API, and what asks the stores more than one question. */
const CLUSTERED = [
  'dist/test/stores/round-trips\\.test\\.js$',
  'dist/test/projections/(applications|log-pages|logs|usage)\\.test\\.js$',
  'dist/test/http/(tenants|reports|idempotency|logs|applications|events|evidence|facts|verify-key)\\.test\\.js$',
  'dist/test/audit/(check-export|event-stream|find-event)\\.test\\.js$',
  'dist/test/cli/audit\\.test\\.js$',
  'dist/test/docs/investigations\\.test\\.js$',
];

/**
 * What `npm run test:stores` runs, in this order: what measures, the rest of this folder, and those of the API once more
 * on an event store and MongoDB.
 */
module.exports = {
  rootDir,
  testTimeout: jest.testTimeout,
  testSequencer: jest.testSequencer,
  projects: [
    { ...stores, displayName: 'measured', testRegex: [MEASURED] },
    {
      ...stores,
      displayName: 'stores',
      testRegex: ['\\.test\\.js$'],
      testPathIgnorePatterns: ['round-trips', MEASURED],
    },
    {
      ...project,
      roots: jest.roots,
      displayName: 'clustered',
      testEnvironmentOptions: { profile: 'clustered' },
      testRegex: CLUSTERED,
    },
  ],
};
