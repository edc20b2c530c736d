import { runNamed, type NamedProgram } from '../test/support/named-programs';

export const benchmarks: Readonly<Record<string, NamedProgram>> = {
  'write-floor': {
    meaning: 'A write, compared with what its libraries cost.',
    files: ['bench/write-floor'],
  },
  'write-cost': {
    meaning: 'A write to a tenant with 10 to 100,000 events.',
    files: ['bench/write-cost'],
  },
  'first-write': {
    meaning: 'The first write to a tenant after a start.',
    files: ['bench/first-write'],
  },
  http: {
    meaning: 'Requests, compared with a bare Koa.',
    files: ['bench/http'],
  },
  proofs: {
    meaning: 'Proofs of rows in a log of a million, and what a row occupies.',
    files: ['bench/proofs'],
  },
  'verify-key': {
    meaning: 'Questions about keys, compared with a bare Koa.',
    files: ['bench/verify-key'],
  },
  keys: {
    meaning: 'Large tenants, and what others notice of them.',
    files: ['bench/keys'],
  },
  applications: {
    meaning: 'A tenant with 1,000 Applications of 100 keys each.',
    files: ['bench/applications'],
  },
  'log-pages': {
    meaning: 'Pages of a long log, near and far, by each filter.',
    files: ['bench/log-pages'],
  },
  projecting: {
    meaning: 'Events that a server finds in the log projected per second.',
    files: ['bench/projecting'],
  },
  replay: {
    meaning: 'A rebuild and a verify beside a server.',
    files: ['bench/replay'],
  },
  ingest: {
    meaning: 'Facts ingested until all are shown, and what others notice.',
    files: ['bench/ingest'],
  },
  facts: {
    meaning: 'Facts taken over HTTP until all are shown, and what others notice.',
    files: ['bench/facts-over-http'],
  },
  picture: {
    meaning:
      'Reads and writes of both profiles beside a bare Koa and the least that they take: the picture of docs/costs.md.',
    files: ['bench/picture'],
  },
  idle: {
    meaning: 'What a server costs that nobody uses.',
    files: ['bench/idle'],
  },
  start: {
    meaning: 'A start with 200,000 events, until it is ready.',
    files: ['bench/start'],
  },
  'active-tenants': {
    meaning: 'What 1,000 active tenants cost the event store in reads.',
    files: ['bench/active-tenants'],
  },
  audit: {
    meaning: 'Raw events exported, checked and found.',
    files: ['bench/audit'],
  },
  'audit-streams': {
    meaning: 'What open event streams cost.',
    files: ['bench/audit-streams'],
  },
  mongodb: {
    meaning: 'Facts projected on SQLite and on MongoDB, and what they occupy.',
    files: ['bench/mongodb'],
  },
  cluster: {
    meaning: 'Writes, bursts and reads on an event store and MongoDB, and beside it on SQLite.',
    files: ['bench/cluster'],
  },
  eventstore: {
    meaning: 'Appends and reads on an event store.',
    files: ['bench/eventstore'],
    nodeOptions: ['--expose-gc'],
  },
};

if (require.main === module) void runNamed('bench', benchmarks);
