import type { Db, MongoClient, MongoClientOptions } from 'mongodb';
import { beforeDeadline, monotonicMs } from '../clock';
import { fault, messageOf, type Fault } from '../fault';
import { whenReachable, type AwaitedStore, type WaitingForStore } from '../reachable-store';
import { programVersion } from '../version';
import { addressOf, wrongAddress } from './address';

export interface MongoConnection {
  readonly db: Db;
  /** The servers and the database, as they may be shown. */
  readonly place: string;
  /** The name and the version of the server, for people. */
  software(): Promise<string>;
  /** Its result. A failure of the driver becomes what it means to callers of a port; anything else stays what it is. */
  run<T>(work: Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/**
 * A commit must survive a failover, and what is read must not be undone by one: everything is read from the primary and
 * written with the majority, whatever the URL says. Nobody waits long for a server that is away or does not answer.
 */
const OPTIONS = {
  appName: 'tenant-ledger',
  readPreference: 'primary',
  readConcernLevel: 'majority',
  writeConcern: { w: 'majority', journal: true },
  ignoreUndefined: true,
  serverSelectionTimeoutMS: 800,
  // Also of the heartbeats: one that comes late, because this thread is busy, would end every command under way.
  connectTimeoutMS: 3_000,
  // Whoever must answer soon has a deadline of its own.
  waitQueueTimeoutMS: 5_000,
  socketTimeoutMS: 10_000,
  heartbeatFrequencyMS: 2_000,
  minHeartbeatFrequencyMS: 100,
} as const satisfies MongoClientOptions;

/** Connecting takes a few round trips; each of them has its own timeout, which a slow server can use up. */
const CONNECT_MS = 5_000;

const AUTHENTICATION_FAILED = 18;
const UNAUTHORIZED = 13;

const driver = (): typeof import('mongodb') => require('mongodb') as typeof import('mongodb');

const clientFor = (url: string): MongoClient => {
  const { MongoClient: Client } = driver();
  try {
    return new Client(url.trim(), { ...OPTIONS, driverInfo: { version: programVersion() } });
  } catch {
    throw wrongAddress('the driver cannot read it, or does not know one of its options');
  }
};

interface Raw {
  readonly code?: unknown;
  readonly cause?: unknown;
  readonly name?: unknown;
  readonly syscall?: unknown;
}

const rawOf = (error: unknown): Raw => (typeof error === 'object' && error !== null ? error : {});

/**
 * Errors of the driver and of its BSON have names of their own. A connection that is reset while a command is written comes
 * as the plain error of the system.
 */
const isOfDriver = (error: unknown): boolean => {
  const { name, syscall } = rawOf(error);
  return /^(Mongo|BSON)/.test(String(name)) || typeof syscall === 'string';
};

/** A message of the driver must not show what the URL holds. */
const wordsOf = (error: unknown): string => messageOf(error).replaceAll(/\/\/[^/\s]*@/g, '//…@');

/** Retrying does not help. What a monitor of the driver found is the cause of what a caller hears. */
const finalFault = (error: unknown, place: string): Fault | undefined => {
  const { code, name, cause } = rawOf(error);
  if (code === AUTHENTICATION_FAILED || code === UNAUTHORIZED)
    return fault(
      'read_models_unavailable',
      `MongoDB at ${place} refuses this user. Check the user, the password and authSource in MONGODB_URL, and that the user may read and write the database.`,
    );
  if (name === 'MongoCompatibilityError')
    return fault(
      'read_models_unavailable',
      `MongoDB at ${place} is too old. Version 4.4 or newer is needed.`,
    );
  if (code === 'ENOENT' || code === 'EACCES')
    return wrongAddress(`a file that it names cannot be read (${wordsOf(error)})`);
  return cause === undefined ? undefined : finalFault(cause, place);
};

const unavailable = (error: unknown, place: string): Error => {
  if (!isOfDriver(error)) return error as Error;
  const words = wordsOf(error);
  const sentence =
    rawOf(error).name === 'MongoServerError'
      ? `MongoDB at ${place} refused: ${words}`
      : `MongoDB at ${place} is out of reach: ${words}`;
  return finalFault(error, place) ?? fault('read_models_unavailable', sentence);
};

/** A command of our own: the driver connects without asking anything where there is no user. */
const reach = async (client: MongoClient, database: string): Promise<void> => {
  const late = (): Error => new Error('It does not answer.');
  const connecting = client.connect().then(() => client.db(database).command({ ping: 1 }));
  await beforeDeadline(connecting, monotonicMs() + CONNECT_MS, late);
};

const mongoAt = (place: string): AwaitedStore => ({
  name: `MongoDB at ${place}`,
  final: (error) => finalFault(error, place),
  late: (seconds, error) =>
    fault(
      'read_models_unavailable',
      `MongoDB at ${place} could not be reached within ${seconds} s. Start it, or correct MONGODB_URL. ${wordsOf(error)}`,
    ),
});

/** Opens the database that a URL names. The driver is loaded only here. */
export const mongoConnection = async (url: string, waiting: WaitingForStore): Promise<MongoConnection> => {
  const { servers, database } = addressOf(url);
  const place = `${servers}/${database}`;
  const client = clientFor(url);
  const close = (): Promise<void> => client.close();
  try {
    await whenReachable(() => reach(client, database), mongoAt(place), waiting);
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
  const db = client.db(database);
  const run = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw unavailable(error, place);
    });
  const software = async () => `MongoDB ${String((await run(db.command({ buildInfo: 1 }))).version)}`;
  return { db, place, software, run, close };
};
