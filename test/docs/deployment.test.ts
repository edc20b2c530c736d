import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { settingNames } from '../../src/configuration';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { has } from '../support/programs';
import { ROOT } from './pages';

const FOLDER = join(ROOT, 'docs', 'deployment');
const textOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

describe('the examples in docs/deployment', () => {
  it('name only settings that exist', () => {
    const lines = textOf('tenant-ledger.service').matchAll(/^Environment=(.*)$/gm);
    const variables = [...lines].flatMap(([, line = '']) => line.split(' '));
    const names = variables.map((variable) => variable.split('=')[0]);
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) expect([...settingNames, 'NODE_ENV', 'NODE_OPTIONS']).toContain(name);
    for (const file of ['nginx.conf', 'Caddyfile', 'envoy.yaml'])
      expect(textOf(file)).toContain('TRUSTED_PROXIES=1');
  });

  it('let facts and questions about keys through from private networks only', () => {
    for (const [file, rule] of [
      [
        'nginx.conf',
        /location ~ \^\/\(facts\|keys\/verify\)\/\?\$ \{[^}]*deny all;\s+client_max_body_size 1m;/,
      ],
      ['Caddyfile', /@outside \{\s+path \/facts .*\s+not remote_ip [^}]*\}[^}]*respond @outside 403/],
      ['envoy.yaml', /'\/\(facts\|keys\/verify\)\/\?' \} \}\s+direct_response: \{ status: 403 \}/],
    ] as const)
      expect(textOf(file)).toMatch(rule);
  });

  it('envoy.yaml is YAML', () => {
    expect(parseAllDocuments(textOf('envoy.yaml')).flatMap((document) => document.errors)).toEqual([]);
  });

  it("the Caddyfile keeps API keys out of Caddy's log", () => {
    expect(textOf('Caddyfile')).toContain('request>headers>Svc-Api-Key delete');
  });

  itIf(has('systemd-analyze', '--version'), 'no systemd-analyze')('systemd-analyze accepts the units', () => {
    const folder = freshFolder();
    const names = readdirSync(FOLDER).filter((name) => /\.(service|timer)$/.test(name));
    expect(names).toHaveLength(3);
    // It looks for the program, which is not installed here.
    for (const name of names)
      writeFileSync(
        join(folder, name),
        textOf(name).replace('ExecStart=tenant-ledger ', `ExecStart=${process.execPath} `),
      );
    const units = names.map((name) => join(folder, name));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...units]);
    expect([status, stderr.toString()]).toEqual([0, '']);
  });
});

describe('.github/workflows/ci.yml', () => {
  it('runs what .ci/run runs, and builds the image', () => {
    const { jobs } = parse(readFileSync(join(ROOT, '.github', 'workflows', 'ci.yml'), 'utf8')) as {
      jobs: Record<string, { steps: readonly { run?: string }[] }>;
    };
    const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
    expect(commands).toEqual(expect.arrayContaining(['.ci/run', 'docker build --tag tenant-ledger .']));
  });
});
