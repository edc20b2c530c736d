import { uuidFrom } from './domain/texts';
import { fault } from './fault';
import { readPolicies } from './limits/policies';

/**
 * Every setting of the program. Validation, `tenant-ledger config`, `--help` and docs/configuration.md are generated
 * from this table.
 */
interface Setting<T> {
  readonly meaning: string;
  readonly fallback: string;
  readonly example: string;
  /** Never shown. */
  readonly secret?: boolean;
  /** Returns undefined if the text is not valid. */
  readonly read: (text: string) => T | undefined;
}

const setting = <T>(meaning: string, fallback: string, example: string, read: Setting<T>['read']) => {
  return { meaning, fallback, example, read };
};
const secretSetting = <T>(...row: Parameters<typeof setting<T>>): Setting<T> => ({
  ...setting(...row),
  secret: true,
});

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

/** Only the scheme: the client checks the rest when it connects, and is not loaded before. */
const eventStoreOrEmpty = matching(/^(esdb(\+discover)?:\/\/\S+)?$/);
const mongoOrEmpty = matching(/^(mongodb(\+srv)?:\/\/\S+)?$/);

const ORIGIN = /^https?:\/\/[^\s/?#,]+$/;

/** Undefined if any entry is not an origin. */
export const readOrigins = (text: string): readonly string[] | undefined => {
  const origins = text.split(',').filter((origin) => origin !== '');
  return origins.every((origin) => origin === '*' || ORIGIN.test(origin)) ? origins : undefined;
};

const PORT = wholeNumber(0, 65_535);
const HOST = matching(/^[0-9A-Za-z.:_-]+$/);

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
type Level = (typeof levels)[number];

export const settings = {
  HOST: setting('The address that the API listens on.', '127.0.0.1', '0.0.0.0', HOST),
  PORT: setting('The port of the API. 0 picks any free port.', '8080', '8080', PORT),
  OPS_HOST: setting(
    'The address that the operations listener (`/`, `/livez`, `/readyz`, `/metrics`) listens on.',
    '127.0.0.1',
    '127.0.0.1',
    HOST,
  ),
  OPS_PORT: setting('The port of the operations listener. 0 picks any free port.', '8081', '8081', PORT),
  DATA_DIR: setting(
    'The folder of the event log and the read models. Several processes may share it. With `EVENTSTORE_URL` and `MONGODB_URL` nothing is kept in it.',
    './data',
    '/var/lib/tenant-ledger',
    matching(/^[^\0]+$/),
  ),
  EVENTSTORE_URL: secretSetting(
    'The connection string of the EventStoreDB or KurrentDB that holds the event log; `MONGODB_URL` is set with it. Empty: the log is kept in `DATA_DIR`.',
    '',
    'esdb://user:password@node1:2113,node2:2113?tlsCAFile=/etc/ca.crt',
    eventStoreOrEmpty,
  ),
  MONGODB_URL: secretSetting(
    'The connection string of the MongoDB that holds what instances share: the read models, the rate counters and the generated secret; `EVENTSTORE_URL` is set with it. Empty: they are kept in `DATA_DIR`, and the rate counters in memory.',
    '',
    'mongodb://user:password@node1:27017,node2:27017/tenant_ledger?replicaSet=rs0&tls=true',
    mongoOrEmpty,
  ),
  HEADER_PREFIX: setting(
    "The prefix of the service's own header names, as in `SVC-API-KEY`.",
    'SVC',
    'ACME',
    matching(/^[A-Za-z][0-9A-Za-z-]{0,31}$/),
  ),
  STREAM_PREFIX: setting(
    'The prefix of every stream name, for a log shared with other programs.',
    '',
    'ledger.',
    matching(/^[0-9A-Za-z._-]{0,64}$/),
  ),
  PUBLIC_URL: setting(
    'The address that clients use: the base URL of `/problems/<code>` in the `type` of an error, and the server that `/openapi.json` names. People can sign in to the portal over a network only if it is https.',
    '',
    'https://api.example.com',
    urlOrEmpty,
  ),
  CORS_ORIGINS: setting(
    'The origins whose pages may call the API from a browser, separated by commas; `*` allows all. Empty: none.',
    '',
    'https://app.example.com,https://admin.example.com',
    (text) => (readOrigins(text) === undefined ? undefined : text),
  ),
  RATE_LIMITS: setting(
    'Overrides the rate limits: `off` for none, or a list of `name=off`, `name=requests` or `name=requests/window/block` (in seconds). Empty: the defaults. `GET /limits` shows the limits in force.',
    '',
    'global=2000/10/10,tokens-search=off',
    (text) => (readPolicies(text) === undefined ? undefined : text),
  ),
  TRUSTED_PROXIES: setting(
    'The number of proxies in front of the service whose `X-Forwarded-For` is trusted. 0: the client is the address of the connection.',
    '0',
    '1',
    wholeNumber(0, 32),
  ),
  OPERATOR_ID: setting(
    'The actor of operator commands without `--actor`, and the owner of tenants without `--owner`.',
    '00000000-0000-0000-0000-000000000000',
    '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11',
    uuidFrom,
  ),
  SECRET: secretSetting(
    'The secret that seals the sessions of the portal and signs checkpoints: at least 32 characters, the same on all instances and for commands. Empty: generated once and kept in MongoDB (`MONGODB_URL`) or else in `DATA_DIR`.',
    '',
    'a-long-random-text-of-32-or-more-characters',
    (text) => (text === '' || text.length >= 32 ? text : undefined),
  ),
  RECORD_CLIENTS: setting(
    'Whether to keep the client address and the user agent of a request with the events that it causes, for investigations: `true` or `false`. They are personal data.',
    'true',
    'false',
    trueOrFalse,
  ),
  DEMO: setting(
    'Whether the first start creates a tenant with some demo facts and prints an API key: `true` or `false`. `npm start` sets it.',
    'false',
    'true',
    trueOrFalse,
  ),
  PORTAL: setting(
    'Whether to serve the console at `/portal`: `true` or `false`.',
    'true',
    'false',
    trueOrFalse,
  ),
  LOG_LEVEL: setting(`The minimum level of log lines: one of ${levels.join(', ')}.`, 'info', 'warn', (text) =>
    levels.find((level): level is Level => level === text),
  ),
} as const;

export type SettingName = keyof typeof settings;

export const isSecret = (name: SettingName): boolean => (settings[name] as Setting<unknown>).secret === true;

export type Configuration = {
  readonly [Name in SettingName]: NonNullable<ReturnType<(typeof settings)[Name]['read']>>;
};

export const settingNames = Object.keys(settings) as readonly SettingName[];

const mustNameBothStoresOrNone = ({ EVENTSTORE_URL, MONGODB_URL }: Configuration): void => {
  if ((EVENTSTORE_URL === '') === (MONGODB_URL === '')) return;
  const [given, missing] =
    EVENTSTORE_URL === '' ? ['MONGODB_URL', 'EVENTSTORE_URL'] : ['EVENTSTORE_URL', 'MONGODB_URL'];
  throw fault(
    'configuration_invalid',
    `${given} is set, but ${missing} is not: set both for an event store and MongoDB, or neither for files in DATA_DIR.`,
  );
};

/** An empty variable counts as unset, because compose files and shells often pass empty ones. */
export const readConfiguration = (environment: Readonly<Record<string, string | undefined>>) => {
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
  const configuration = Object.fromEntries(entries) as Configuration;
  mustNameBothStoresOrNone(configuration);
  return configuration;
};

export const programVersion = (): string =>
  (require('../../package.json') as { readonly version: string }).version;
