import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { readConfiguration, settingNames, settings } from '../src/configuration';
import { TIMES } from '../src/times';

/** Not every machine has a container engine: this checks what can be checked without one. */
const ROOT = join(__dirname, '..', '..');
const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

interface Container {
  readonly image?: string;
  readonly build?: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly stop_grace_period: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Container>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** As Compose does it if the variable is not set: in values, after parsing. */
const withDefault = (value: unknown): unknown =>
  typeof value === 'string' ? value.replace(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1') : value;

const COMPOSE = textOf('docker-compose.yml');
const strictly = { strict: true, uniqueKeys: true };
const compose = parse(COMPOSE, (_, value) => withDefault(value), strictly) as Compose;
type Name = 'service' | 'kurrentdb' | 'mongodb';
const { service, kurrentdb, mongodb } = compose.services as Record<Name, Container>;

const dockerfile = textOf('Dockerfile')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ name: line.split(' ')[0] ?? '', rest: line.slice(line.indexOf(' ') + 1).trim() }));

const lastStage = dockerfile.slice(dockerfile.findLastIndex(({ name }) => name === 'FROM'));
const inLast = (name: string): string => lastStage.find((line) => line.name === name)?.rest ?? '';

const imageEnvironment = Object.fromEntries(
  inLast('ENV')
    .split(/\s+/)
    .map((pair) => pair.split('=') as [string, string]),
);

describe('docker-compose.yml', () => {
  it('sets only variables that the service has, to valid values', () => {
    const unknown = Object.keys(service.environment).filter((name) => !settingNames.includes(name as never));
    expect(unknown).toEqual([]);
    expect(() => readConfiguration({ ...imageEnvironment, ...service.environment })).not.toThrow();
  });

  it('allows nobody in with a default password', () => {
    expect(service.environment['SECRET']).toBe('');
    expect(COMPOSE).toContain('SECRET: ${SECRET:-}');
    expect(COMPOSE).not.toMatch(/changeit|_PASSWORD|\/\/[^/\s]+:[^/\s]+@/i);
  });

  it('publishes only the API, and only to this machine', () => {
    const published = Object.entries(compose.services).flatMap(([name, { ports = [] }]) =>
      ports.map((port) => ({ name, port })),
    );
    expect(published).toEqual([{ name: 'service', port: `127.0.0.1:8080:${settings.PORT.fallback}` }]);
    expect(COMPOSE).not.toMatch(/network_mode|privileged:|docker\.sock/);
  });

  it('keeps the stores on an internal network that the service shares', () => {
    const { hostname, port } = new URL(service.environment['EVENTSTORE_URL'] ?? '');
    expect([hostname, port]).toEqual(['kurrentdb', '2113']);
    const mongo = new URL(service.environment['MONGODB_URL'] ?? '');
    expect([mongo.hostname, mongo.port, mongo.searchParams.get('replicaSet')]).toEqual([
      'mongodb',
      '27017',
      'rs0',
    ]);
    for (const store of [kurrentdb, mongodb]) expect(store.networks).toEqual(['inside']);
    expect(compose.networks['inside']?.internal).toBe(true);
    expect(service.networks).toEqual(expect.arrayContaining(['inside', 'outside']));
    expect(compose.networks['outside']?.internal).toBeUndefined();
  });

  it('gives the service time to finish requests in progress', () => {
    expect(parseInt(service.stop_grace_period, 10) * 1_000).toBeGreaterThan(TIMES.shutdownMs);
  });

  it('is documented, every variable of it', () => {
    const docs = textOf('docs/deployment/README.md');
    const variables = [...COMPOSE.matchAll(/\$\{([A-Z_]+)/g)].map((match) => match[1] ?? '');
    expect(variables.length).toBeGreaterThan(3);
    expect(variables.filter((name) => !docs.includes(`\`${name}\``))).toEqual([]);
  });
});

describe('the Dockerfile', () => {
  it('has a health check that distinguishes ready from not ready', async () => {
    const [node, option, script = ''] = JSON.parse(
      inLast('HEALTHCHECK').split(' CMD ')[1] ?? '[]',
    ) as string[];
    expect([node, option]).toEqual(['node', '-e']);
    const address = `http://127.0.0.1:${settings.OPS_PORT.fallback}/readyz`;
    expect(script).toContain(address);
    let status = 200;
    const server = createServer((_, answer) => answer.writeHead(status).end('{}')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const check = (): Promise<number> =>
      promisify(execFile)(process.execPath, [
        '-e',
        script.replace(address, `http://127.0.0.1:${port}/readyz`),
      ]).then(
        () => 0,
        (error: { code: number }) => error.code,
      );
    expect(await check()).toBe(0);
    status = 503;
    expect(await check()).toBe(1);
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
    expect(await check()).toBe(1);
  });
});
