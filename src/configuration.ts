import { fault } from './fault';
import { readPolicies } from './limits/policies';
import { readTrustedProxies } from './limits/trusted-proxies';
import { uuidFrom } from './uuid';

/**
 * Every setting of the program: the checks, `tenant-ledger config`, `--help` and docs/configuration.md are made from
 * this table.
 */
interface Setting<T> {
  readonly meaning: string;
  readonly fallback: string;
  readonly example: string;
  /** Never shown. */
  readonly secret?: boolean;
  /** Undefined: the text is not valid. */
  readonly read: (text: string) => T | undefined;
}

const setting = <T>(one: Setting<T>): Setting<T> => one;

const wholeNumber = (min: number, max: number) => (text: string) => {
  const value = /^[0-9]{1,12}$/.test(text) ? Number(text) : NaN;
  return value >= min && value <= max ? value : undefined;
};

const trueOrFalse = (text: string) => (text === 'true' ? true : text === 'false' ? false : undefined);

const matching = (pattern: RegExp) => (text: string) => (pattern.test(text) ? text : undefined);

const urlOrEmpty = (text: string): string | undefined => {
  if (text === '') return '';
  return /^https?:\/\/[^\s/?#]+[^\s?#]*$/.test(text) ? text.replace(/\/+$/, '') : undefined;
};

/** The rest is checked when it is used, by the client, which is loaded only then. */
const eventStoreOrEmpty = matching(/^(esdb(\+discover)?:\/\/\S+)?$/);
const mongoOrEmpty = matching(/^(mongodb(\+srv)?:\/\/\S+)?$/);

const ORIGIN = /^https?:\/\/[^\s/?#,]+$/;

/** Undefined: one of them is no origin. */
export const readOrigins = (text: string): readonly string[] | undefined => {
  const origins = text.split(',').filter((one) => one !== '');
  return origins.every((one) => one === '*' || ORIGIN.test(one)) ? origins : undefined;
};

const PORT = wholeNumber(0, 65_535);
const HOST = matching(/^[0-9A-Za-z.:_-]+$/);

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
type Level = (typeof levels)[number];

export const settings = {
  HOST: setting({
    meaning: 'The address that the API listens on.',
    fallback: '127.0.0.1',
    example: '0.0.0.0',
    read: HOST,
  }),
  PORT: setting({
    meaning: 'The port of the API. 0 takes any free one.',
    fallback: '8080',
    example: '8080',
    read: PORT,
  }),
  OPS_HOST: setting({
    meaning: 'The address that the operations listener (`/livez`, `/readyz`, `/metrics`) listens on.',
    fallback: '127.0.0.1',
    example: '127.0.0.1',
    read: HOST,
  }),
  OPS_PORT: setting({
    meaning: 'The port of the operations listener. 0 takes any free one.',
    fallback: '8081',
    example: '8081',
    read: PORT,
  }),
  DATA_DIR: setting({
    meaning:
      'The folder of the event log (without `EVENTSTORE_URL`), the read models (without `MONGODB_URL`) and the snapshots. Several processes may share it. With both URLs set it is only a cache.',
    fallback: './data',
    example: '/var/lib/tenant-ledger',
    read: matching(/^[^\0]+$/),
  }),
  EVENTSTORE_URL: setting({
    meaning:
      'The connection string of an EventStoreDB or KurrentDB that keeps the event log. Empty: it is kept in `DATA_DIR`.',
    fallback: '',
    example: 'esdb://user:password@node1:2113,node2:2113?tlsCAFile=/etc/ca.crt',
    secret: true,
    read: eventStoreOrEmpty,
  }),
  EVENTSTORE_WAIT_SECONDS: setting({
    meaning: 'How long a start waits for the event store to become reachable.',
    fallback: '60',
    example: '300',
    read: wholeNumber(0, 3_600),
  }),
  MONGODB_URL: setting({
    meaning:
      'The connection string of a MongoDB that keeps what instances share: the read models, the rate counters, the last uses of keys and the generated secret. Empty: they are kept in `DATA_DIR`, the rate counters in memory.',
    fallback: '',
    example: 'mongodb://user:password@node1:27017,node2:27017/tenant_ledger?replicaSet=rs0&tls=true',
    secret: true,
    read: mongoOrEmpty,
  }),
  MONGODB_WAIT_SECONDS: setting({
    meaning: 'How long a start waits for MongoDB to become reachable.',
    fallback: '60',
    example: '300',
    read: wholeNumber(0, 3_600),
  }),
  READS_WITHOUT_LOG_SECONDS: setting({
    meaning:
      'How long reads go on after the event log last answered. Then they are refused until it is back: keys may have been revoked in the meantime.',
    fallback: '300',
    example: '60',
    read: wholeNumber(0, 31_536_000),
  }),
  HEADER_PREFIX: setting({
    meaning: 'The first part of the names of our own headers, as in `SVC-API-KEY`.',
    fallback: 'SVC',
    example: 'ACME',
    read: matching(/^[A-Za-z][0-9A-Za-z-]{0,31}$/),
  }),
  STREAM_PREFIX: setting({
    meaning: 'The prefix of every stream name, for a log that is shared with other programs.',
    fallback: '',
    example: 'ledger.',
    read: matching(/^[0-9A-Za-z._-]{0,64}$/),
  }),
  PUBLIC_URL: setting({
    meaning: 'What comes before `/problems/<code>` in the `type` of an error.',
    fallback: '',
    example: 'https://api.example.com',
    read: urlOrEmpty,
  }),
  BODY_LIMIT: setting({
    meaning: 'The largest body of a request, in bytes.',
    fallback: '65536',
    example: '65536',
    read: wholeNumber(1_024, 1_048_576),
  }),
  CORS_ORIGINS: setting({
    meaning:
      'The origins whose pages may call the API from a browser, as a list; `*` for all of them. Empty: none.',
    fallback: '',
    example: 'https://app.example.com,https://admin.example.com',
    read: (text) => (readOrigins(text) === undefined ? undefined : text),
  }),
  MAX_APPLICATIONS: setting({
    meaning: 'The most Applications that a tenant may have at a time.',
    fallback: '1000',
    example: '5000',
    read: wholeNumber(1, 10_000),
  }),
  MAX_KEYS: setting({
    meaning: 'The most keys, neither revoked nor expired, that an Application may have at a time.',
    fallback: '100',
    example: '10',
    read: wholeNumber(1, 1_000),
  }),
  RATE_LIMITS: setting({
    meaning:
      'Changes the rate limits: `off` for none, or a list of `name=off`, `name=requests` or `name=requests/window/block` (in seconds). Empty: as specified. `tenant-ledger limits` shows them.',
    fallback: '',
    example: 'global=2000/10/10,tokens-search=off',
    read: (text) => (readPolicies(text) === undefined ? undefined : text),
  }),
  TRUSTED_PROXIES: setting({
    meaning:
      'Whose `X-Forwarded-For` is trusted to name the client: the number of proxies in front of the service, or a list of their addresses and networks. Empty: nobody, the address of the connection counts.',
    fallback: '',
    example: '10.0.0.0/8,fd00::/8',
    read: (text) => (readTrustedProxies(text) === undefined ? undefined : text),
  }),
  OPERATOR_ID: setting({
    meaning: 'The actor of operator commands without `--actor`, and the owner of tenants without `--owner`.',
    fallback: '00000000-0000-0000-0000-000000000000',
    example: '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11',
    read: uuidFrom,
  }),
  SECRET: setting({
    meaning:
      'Signs the cursors of lists: at least 32 characters, the same for all instances. Empty: generated once and kept in MongoDB (`MONGODB_URL`) or else in `DATA_DIR`.',
    fallback: '',
    example: 'a-long-random-text-of-32-or-more-characters',
    secret: true,
    read: (text) => (text === '' || text.length >= 32 ? text : undefined),
  }),
  RECORD_CLIENTS: setting({
    meaning:
      'Whether the client address and the user agent of a request are kept with the events that it causes, for investigations: `true` or `false`. They are personal data.',
    fallback: 'true',
    example: 'false',
    read: trueOrFalse,
  }),
  DEMO: setting({
    meaning:
      'Whether a first start creates a tenant with some demonstration facts and prints an API key: `true` or `false`.',
    fallback: 'true',
    example: 'false',
    read: trueOrFalse,
  }),
  SHUTDOWN_SECONDS: setting({
    meaning: 'How long a stopping server waits for requests that are under way.',
    fallback: '10',
    example: '30',
    read: wholeNumber(0, 600),
  }),
  LOG_LEVEL: setting({
    meaning: `The lowest level of the log lines that are written: one of ${levels.join(', ')}.`,
    fallback: 'info',
    example: 'warn',
    read: (text) => levels.find((level): level is Level => level === text),
  }),
} as const;

export type SettingName = keyof typeof settings;

export const isSecret = (name: SettingName): boolean => (settings[name] as Setting<unknown>).secret === true;

export type Configuration = {
  readonly [Name in SettingName]: NonNullable<ReturnType<(typeof settings)[Name]['read']>>;
};

export const settingNames = Object.keys(settings) as readonly SettingName[];

/** An empty variable counts as not set: compose files and shells often pass empty ones. */
export const readConfiguration = (
  environment: Readonly<Record<string, string | undefined>>,
): Configuration => {
  const entries = settingNames.map((name) => {
    const { read, fallback, example, meaning, secret }: Setting<unknown> = settings[name];
    const text = environment[name] ?? '';
    const value = read(text === '' ? fallback : text);
    if (value === undefined)
      throw fault(
        'configuration_invalid',
        `${name}=${secret === true ? '…' : JSON.stringify(text)} is not valid. ${meaning} For example: ${name}=${example}`,
      );
    return [name, value];
  });
  return Object.fromEntries(entries) as Configuration;
};
