import { readConfiguration, settingNames, settings, type SettingName } from '../src/configuration';
import { freshFolder } from './support/folders';
import { command } from './support/service';

const A_UUID = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';

interface Samples {
  readonly good: readonly (readonly [string, unknown])[];
  readonly bad: readonly string[];
}

const hosts: Samples = {
  good: [
    ['0.0.0.0', '0.0.0.0'],
    ['::1', '::1'],
    ['db-1.example.com', 'db-1.example.com'],
  ],
  bad: ['a b', 'http://here', '127.0.0.1/', 'a;b'],
};
const ports: Samples = {
  good: [
    ['0', 0],
    ['1', 1],
    ['65535', 65_535],
  ],
  bad: ['65536', '-1', '80.5', 'http', '0x50', ' 80', '8080 ', '1e3'],
};

const samples: Readonly<Record<SettingName, Samples>> = {
  HOST: hosts,
  OPS_HOST: hosts,
  PORT: ports,
  OPS_PORT: ports,
  DATA_DIR: {
    good: [
      ['./x y', './x y'],
      ['/var/lib/ü', '/var/lib/ü'],
    ],
    bad: ['a\0b'],
  },
  EVENTSTORE_URL: {
    good: [
      ['esdb://127.0.0.1:2113?tls=false', 'esdb://127.0.0.1:2113?tls=false'],
      ['esdb+discover://admin:secret@es.example.com', 'esdb+discover://admin:secret@es.example.com'],
    ],
    bad: ['http://127.0.0.1:2113', 'esdb://', 'esdb:127.0.0.1', 'esdb://a b', 'here'],
  },
  MONGODB_URL: {
    good: [
      ['mongodb://127.0.0.1:27017', 'mongodb://127.0.0.1:27017'],
      ['mongodb+srv://user:secret@db.example.com/ledger', 'mongodb+srv://user:secret@db.example.com/ledger'],
    ],
    bad: ['http://127.0.0.1:27017', 'mongodb://', 'mongodb:127.0.0.1', 'mongodb://a b', 'here'],
  },
  SECRET: { good: [['x'.repeat(32), 'x'.repeat(32)]], bad: ['short', 'x'.repeat(31)] },
  RECORD_CLIENTS: { good: [['false', false]], bad: ['no', '0'] },
  DEMO: {
    good: [
      ['true', true],
      ['false', false],
    ],
    bad: ['yes', '1', 'TRUE', 'toString'],
  },
  PORTAL: {
    good: [
      ['true', true],
      ['false', false],
    ],
    bad: ['yes', '1', 'TRUE', 'toString'],
  },
  HEADER_PREFIX: {
    good: [
      ['BT', 'BT'],
      ['x-acme', 'x-acme'],
      [`A${'b'.repeat(31)}`, `A${'b'.repeat(31)}`],
    ],
    bad: ['1A', '-A', 'A B', 'A:', 'Ä', `A${'b'.repeat(32)}`, 'A\r\nB'],
  },
  STREAM_PREFIX: {
    good: [
      ['ledger.', 'ledger.'],
      ['a_b-', 'a_b-'],
    ],
    bad: ['a b', '$all', 'ä', 'x'.repeat(65)],
  },
  PUBLIC_URL: {
    good: [
      ['https://api.example.com', 'https://api.example.com'],
      ['http://localhost:8080/base/', 'http://localhost:8080/base'],
    ],
    bad: ['api.example.com', 'ftp://x', 'https://', 'https://a b', 'https://a?b=c', 'https://a#b'],
  },
  RATE_LIMITS: {
    good: ['off', 'global=off', 'global=1', 'global=5/1/2', 'portal=off,global=1000000000/3600/3600'].map(
      (text) => [text, text],
    ),
    bad: [
      'on',
      'OFF',
      'global',
      'global=',
      'global=0',
      'global=-1',
      'global=1.5',
      'global=1e3',
      'global=1000000001',
      'global=1/1',
      'global=1/0/1',
      'global=1/1/0',
      'global=1/3601/1',
      'global=1/1/3601',
      'global=1/1/1/1',
      'global=1,global=2',
      'global=1,',
      'global=1, portal=1',
      'nowhere=1',
      '__proto__=1',
      'off,global=1',
    ],
  },
  CORS_ORIGINS: {
    good: [
      ['', ''],
      ['*', '*'],
      ['https://app.example.com,http://localhost:3000', 'https://app.example.com,http://localhost:3000'],
    ],
    bad: [
      'app.example.com',
      'https://app.example.com/',
      'https://a.example,b',
      'ftp://a.example',
      'https://',
    ],
  },
  TRUSTED_PROXIES: {
    good: [
      ['0', 0],
      ['32', 32],
    ],
    bad: ['33', '-1', '1.5', 'true', '10.0.0.0/8'],
  },
  OPERATOR_ID: {
    good: [
      [A_UUID, A_UUID],
      [A_UUID.toUpperCase(), A_UUID],
    ],
    bad: ['me', A_UUID.slice(1), `{${A_UUID}}`, `${A_UUID} `],
  },
  LOG_LEVEL: {
    good: [
      ['trace', 'trace'],
      ['silent', 'silent'],
    ],
    bad: ['INFO', 'verbose', '30', 'toString'],
  },
};

const each = <T>(of: (one: Samples) => readonly T[]): readonly [SettingName, T][] =>
  settingNames.flatMap((name) => of(samples[name]).map((one): [SettingName, T] => [name, one]));

describe('the configuration', () => {
  it('has its defaults if nothing is set, and if everything is set to nothing', () => {
    const defaults = {
      HOST: '127.0.0.1',
      PORT: 8_080,
      OPS_HOST: '127.0.0.1',
      OPS_PORT: 8_081,
      DATA_DIR: './data',
      EVENTSTORE_URL: '',
      MONGODB_URL: '',
      HEADER_PREFIX: 'SVC',
      STREAM_PREFIX: '',
      PUBLIC_URL: '',
      RATE_LIMITS: '',
      CORS_ORIGINS: '',
      TRUSTED_PROXIES: 0,
      OPERATOR_ID: '00000000-0000-0000-0000-000000000000',
      SECRET: '',
      RECORD_CLIENTS: true,
      DEMO: false,
      PORTAL: true,
      LOG_LEVEL: 'info',
    };
    expect(readConfiguration({})).toEqual(defaults);
    const empty = Object.fromEntries(settingNames.map((name) => [name, '']));
    expect(readConfiguration(empty)).toEqual(defaults);
  });

  /** Both stores are named, or neither. */
  const besides = (name: SettingName): Partial<Record<SettingName, string>> => {
    if (name === 'EVENTSTORE_URL') return { MONGODB_URL: settings.MONGODB_URL.example };
    return name === 'MONGODB_URL' ? { EVENTSTORE_URL: settings.EVENTSTORE_URL.example } : {};
  };

  it.each(settingNames)('gives a valid example of %s', (name) => {
    expect(() => readConfiguration({ [name]: settings[name].example, ...besides(name) })).not.toThrow();
  });

  it.each(each(({ good }) => good))('accepts %s=%j', (name, [text, value]) => {
    expect(readConfiguration({ [name]: text, ...besides(name) })[name]).toBe(value);
  });

  it.each([
    ['EVENTSTORE_URL', 'MONGODB_URL'],
    ['MONGODB_URL', 'EVENTSTORE_URL'],
  ] as const)('refuses %s without %s', (given, missing) => {
    expect(() => readConfiguration({ [given]: settings[given].example })).toThrow(
      `${given} is set, but ${missing} is not: set both for an event store and MongoDB, or neither for files in DATA_DIR.`,
    );
  });

  it.each(each(({ bad }) => bad))('refuses %s=%j', (name, text) => {
    const shown = ['SECRET', 'EVENTSTORE_URL', 'MONGODB_URL'].includes(name) ? '…' : JSON.stringify(text);
    const sentence = `${name}=${shown} is not valid. ${settings[name].meaning} For example: ${name}=${settings[name].example}`;
    expect(() => readConfiguration({ [name]: text })).toThrow(
      expect.objectContaining({ code: 'configuration_invalid', message: sentence }),
    );
  });

  it.each([
    ['serve', { PORT: 'http' }],
    ['serve', { OPERATOR_ID: 'me' }],
    ['tenant list', { PORTAL: 'yes' }],
    ['config', { LOG_LEVEL: 'loud' }],
  ])('that is invalid ends %s with one sentence', async (line, wrong) => {
    const [name] = Object.keys(wrong) as [SettingName];
    const ended = await command(line.split(' '), {
      DATA_DIR: freshFolder(),
      PORT: '0',
      OPS_PORT: '0',
      ...wrong,
    });
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr.split('\n')).toEqual([expect.stringContaining(`For example: ${name}=`), '']);
    expect(ended.stderr).toContain('[configuration_invalid]');
  });
});
