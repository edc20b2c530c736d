import { runNamed, type NamedProgram } from './support/named-programs';

export const campaigns: Readonly<Record<string, NamedProgram>> = {
  crash: {
    meaning: 'Kills a busy server twenty times and accounts for every write.',
    files: ['test/stores/crash.test'],
    env: { KILLS: '20', CLIENTS: '64' },
  },
  instances: {
    meaning:
      'Kills the following one of three instances ten times under load, kills one and suspends one in a transaction during a burst of 20,000 facts, and accounts for every write.',
    files: ['test/stores/instances.test', 'test/stores/open-transactions.test'],
    env: { KILLS: '10', FACTS: '20000' },
  },
  mongodb: {
    meaning:
      'Kills, freezes and rolls back members of a replica set of three under three instances, and accounts for every write.',
    files: ['test/stories/mongodb-campaign'],
  },
  eventstore: {
    meaning: 'Freezes and kills the event store under 16 writers and a subscriber.',
    files: ['test/event-log/eventstoredb-campaign'],
  },
  reconnects: {
    meaning: 'Cuts the connection to the event store ten thousand times and compares the heap.',
    files: ['bench/eventstore'],
    nodeOptions: ['--expose-gc'],
    env: { RECONNECTS: '10000' },
  },
  switches: {
    meaning:
      'Writes to one server and reads from another while read models are switched a thousand times, and ten times under 64 writers on two instances.',
    files: ['test/stores/switches.test', 'test/stores/clustered-switches.test'],
    env: { SWITCHES: '1000', CLUSTERED_SWITCHES: '10' },
  },
  isolation: {
    meaning: "Makes ten thousand requests that use another tenant's ids, keys and cursors.",
    files: ['test/stores/isolation.test'],
    env: { CASES: '10000' },
  },
  tampering: {
    meaning: 'Changes copies of a log in every way, and checks them against what an auditor has kept.',
    files: ['test/stores/tampering.test'],
    env: { ROUNDS: '100' },
  },
  requests: {
    meaning: 'Generates ten thousand valid, invalid and corrupted requests from the declared routes.',
    files: ['test/stories/requests.test'],
    env: { CASES: '10000' },
  },
  'event-loop': {
    meaning:
      'Requests everything that could be slow for a tenant with 400,000 rows of one entity, and measures the delay for others.',
    files: ['test/stores/event-loop.test'],
    env: { ROWS: '400000', ROUND_MS: '10000' },
  },
  limits: {
    meaning: 'Sends one request each from a million addresses.',
    files: ['test/limits/many-addresses.test'],
    env: { ADDRESSES: '1000000' },
  },
  backup: {
    meaning: 'Makes twenty backups while 64 writers append, restores and compares each.',
    files: ['test/event-log/sqlite-backup.test'],
    env: { BACKUPS: '20' },
  },
  copy: {
    meaning: 'Copies 20,000 events to an event store and back, and kills each copy three times.',
    files: ['test/stores/copy-adapters.test'],
    env: { EVENTS: '20000', KILLS: '3' },
  },
  audit: {
    meaning: 'Exports a million events, confirms them, and detects the tampering in altered copies.',
    files: ['test/audit/check-export.test'],
    env: { EVENTS: '1000000' },
  },
};

if (require.main === module) void runNamed('campaign', campaigns);
