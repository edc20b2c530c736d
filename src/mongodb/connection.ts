import type { Db, MongoClient, MongoClientOptions } from 'mongodb';
import os from 'node:os';
import { whenReachable, type AwaitedStore, type WaitingForStore } from '../async/reachable-store';
import { programVersion } from '../configuration';
import { fault, messageOf, type Fault } from '../fault';
import { TIMES } from '../times';

export interface MongoConnection {
  readonly db: Db;
  /** The servers and the database, without credentials. */
  readonly place: string;
  /** Turns errors of the driver into faults of the port, and passes on everything else. */
  run<T>(work: Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Checked before the driver sees it, because that quotes what it cannot parse, which may be a password. */
const FORM =
  /^mongodb(?:\+srv)?:\/\/(?:[^:@/?#\s]+(?::[^:@/?#\s]*)?@)?([^@/?#\s]+)(?:\/([^/?#\s]*))?(?:\?[^?#\s]*)?$/;

/** What MongoDB allows on every platform. */
const DATABASE = /^[^/\\. "$*<>:|?\0]{1,63}$/;

/** Options that the driver accepts, and then fails with an error about something else. */
const UNUSABLE = /[?&](maxStalenessSeconds|readPreferenceTags|compressors=(?!zlib(&|$)))/i;

const invalidAddress = (why: string): Fault =>
  fault(
    'configuration_invalid',
    `MONGODB_URL is not valid: ${why}. For example: MONGODB_URL=mongodb://127.0.0.1:27017/tenant_ledger`,
  );

/** The servers, without user and password, so that they may be shown, and the database. */
export const addressOf = (url: string) => {
  const found = FORM.exec(url);
  if (found === null)
    throw invalidAddress(
      'it must be mongodb://[user:password@]host:port[,host:port…]/database[?option=value&…], with special characters percent-encoded',
    );
  if (UNUSABLE.test(url))
    throw invalidAddress(
      'maxStalenessSeconds and readPreferenceTags, which are for reads from secondaries, and compressors other than zlib cannot be used',
    );
  const [, servers = '', named = ''] = found;
  const database = named === '' ? 'tenant_ledger' : named;
  if (DATABASE.test(database)) return { servers, database };
  throw invalidAddress(`${JSON.stringify(database)} cannot be the name of a database`);
};

/**
 * A failover must not lose a commit or roll back what was read: so everything is read from the primary, and read and
 * written with majority concern, whatever the URL says. Timeouts are short, for servers that are away or do not answer.
 */
const OPTIONS = {
  appName: 'tenant-ledger',
  readPreference: 'primary',
  readConcernLevel: 'majority',
  // Not as `writeConcern`, of which the URL could override parts.
  w: 'majority',
  journal: true,
  wtimeoutMS: 0,
  ignoreUndefined: true,
  serverSelectionTimeoutMS: 800,
  // Callers in a hurry have a deadline of their own.
  waitQueueTimeoutMS: 5_000,
  socketTimeoutMS: 10_000,
  heartbeatFrequencyMS: 2_000,
  minHeartbeatFrequencyMS: 100,
} as const satisfies MongoClientOptions;

/** Unless the URL says otherwise. */
const DEFAULTS = { maxPoolSize: 20, maxIdleTimeMS: 60_000 } as const satisfies MongoClientOptions;

const AUTHENTICATION_FAILED = 18;
const UNAUTHORIZED = 13;

const clientFor = (url: string, waitMs: number): MongoClient => {
  const { MongoClient: Client } = require('mongodb') as typeof import('mongodb');
  const isInUrl = (name: string): boolean => new RegExp(`[?&]${name}=`, 'i').test(url);
  const defaults = Object.fromEntries(Object.entries(DEFAULTS).filter(([name]) => !isInUrl(name)));
  try {
    // Where a program may not import at run time, as in Jest, the driver would not find it and send an invalid handshake.
    const runtimeAdapters = { os };
    const driverInfo = { version: programVersion() };
    // A process that has given up does not end before. It applies to heartbeats too: a late one, because this thread is
    // busy, would abort every command in progress.
    const connectTimeoutMS = Math.max(TIMES.noAnswerMs, Math.min(TIMES.silentReadMs, waitMs));
    const options = { ...defaults, ...OPTIONS, connectTimeoutMS, runtimeAdapters, driverInfo };
    return new Client(url, options);
  } catch {
    throw invalidAddress('the driver cannot parse it, or does not know one of its options');
  }
};

type Raw = Readonly<Partial<Record<'code' | 'cause' | 'name' | 'syscall', unknown>>>;

const rawOf = (error: unknown): Raw => (typeof error === 'object' && error !== null ? error : {});

/** Without the credentials that the driver may quote from the URL. */
const safeMessageOf = (error: unknown): string => messageOf(error).replaceAll(/\/\/[^/\s]*@/g, '//…@');

/** Undefined: retrying may help. What the driver's monitor found is the `cause` of the error that a caller gets. */
const finalFault = (error: unknown, place: string): Fault | undefined => {
  const { code, name, cause, syscall } = rawOf(error);
  if (code === AUTHENTICATION_FAILED || code === UNAUTHORIZED)
    return fault(
      'read_models_unavailable',
      `MongoDB at ${place} refuses this user. Check the user, the password and authSource in MONGODB_URL (without a user, it is refused by a server with authentication), and that the user may read and write the database.`,
      { isFinal: true },
    );
  if (name === 'MongoCompatibilityError')
    return fault(
      'read_models_unavailable',
      `MongoDB at ${place} is too old. Version 4.4 or newer is needed.`,
      { isFinal: true },
    );
  // Not of the socket of a server that is down.
  if ((code === 'ENOENT' || code === 'EACCES') && syscall !== 'connect')
    return invalidAddress(`a file that it names cannot be read (${safeMessageOf(error)})`);
  return cause === undefined ? undefined : finalFault(cause, place);
};

/**
 * Errors of the driver and of its BSON library are recognizable by name. A connection reset while a command is being
 * written surfaces as a plain system error.
 */
const unavailable = (error: unknown, place: string): Error => {
  const { name, syscall } = rawOf(error);
  if (!/^(Mongo|BSON)/.test(String(name)) && typeof syscall !== 'string') return error as Error;
  const why = name === 'MongoServerError' ? 'refused' : 'is out of reach';
  const text = `MongoDB at ${place} ${why}: ${safeMessageOf(error)}`;
  return finalFault(error, place) ?? fault('read_models_unavailable', text);
};

const mongoAt = (place: string): AwaitedStore => ({
  name: `MongoDB at ${place}`,
  final: (error) => finalFault(error, place),
  late: (seconds, error) =>
    fault(
      'read_models_unavailable',
      `MongoDB at ${place} could not be reached within ${seconds} s. Start it, or correct MONGODB_URL. ${safeMessageOf(error)}`,
    ),
});

/** Opens the database in the URL. The driver is loaded only here. */
export const mongoConnection = async (url: string, waiting: WaitingForStore): Promise<MongoConnection> => {
  const { servers, database } = addressOf(url);
  const place = `${servers}/${database}`;
  const client = clientFor(url, waiting.waitMs);
  const db = client.db(database);
  // Lists collections, because `connect` sends no command without a user, and a ping needs no permission.
  const reach = () => client.connect().then(() => db.listCollections({}, { nameOnly: true }).toArray());
  try {
    await whenReachable(reach, mongoAt(place), waiting);
  } catch (error) {
    await client.close().catch(() => undefined);
    throw error;
  }
  const run = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw unavailable(error, place);
    });
  return { db, place, run, close: () => client.close() };
};
