import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { settingNames } from '../../src/configuration';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';

const FOLDER = join(__dirname, '..', '..', '..', 'docs', 'deployment');
const textOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

const has = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;

const certificateIn = (folder: string) => {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const request = `req -x509 -newkey rsa:2048 -nodes -subj /CN=api.example.com -keyout ${key} -out ${certificate}`;
  expect(spawnSync('openssl', request.split(' ')).status).toBe(0);
  return { key, certificate };
};

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

  it('envoy.yaml is YAML', () => {
    expect(parseAllDocuments(textOf('envoy.yaml')).flatMap((document) => document.errors)).toEqual([]);
  });

  itIf(has('nginx', '-v') && has('openssl', 'version'), 'no nginx or openssl')(
    'nginx -t accepts nginx.conf',
    () => {
      const folder = freshFolder();
      const { key, certificate } = certificateIn(folder);
      const server = textOf('nginx.conf')
        .replace(/ssl_certificate .*;/, `ssl_certificate ${certificate};`)
        .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`);
      const whole = join(folder, 'nginx.conf');
      // It creates its folders, which only root may do in the usual place.
      const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${join(folder, name)};`,
      );
      writeFileSync(
        whole,
        `pid ${folder}/nginx.pid; error_log ${folder}/error.log; events {}\nhttp {\naccess_log off;\n${folders.join('\n')}\n${server}\n}\n`,
      );
      const { status, stderr } = spawnSync('nginx', ['-t', '-p', folder, '-c', whole]);
      expect([status, stderr.toString()]).toEqual([0, expect.stringContaining('test is successful')]);
    },
  );

  itIf(has('caddy', 'version'), 'no caddy')('caddy validate accepts the Caddyfile', () => {
    const env = { ...process.env, XDG_DATA_HOME: freshFolder(), XDG_CONFIG_HOME: freshFolder() };
    const args = ['validate', '--adapter', 'caddyfile', '--config', join(FOLDER, 'Caddyfile')];
    const { status, stderr } = spawnSync('caddy', args, { env });
    expect([status, stderr.toString()]).toEqual([0, expect.not.stringContaining('"level":"warn"')]);
  });

  it("the Caddyfile keeps API keys out of Caddy's log", () => {
    expect(textOf('Caddyfile')).toContain('request>headers>Svc-Api-Key delete');
  });

  itIf(has('envoy', '--version') && has('openssl', 'version'), 'no envoy or openssl')(
    'envoy accepts envoy.yaml',
    () => {
      const folder = freshFolder();
      const { key, certificate } = certificateIn(folder);
      const whole = join(folder, 'envoy.yaml');
      const text = textOf('envoy.yaml')
        .replace('/etc/ssl/certs/api.example.com.pem', certificate)
        .replace('/etc/ssl/private/api.example.com.key', key);
      writeFileSync(whole, text);
      const { status, stderr } = spawnSync('envoy', ['--mode', 'validate', '-c', whole]);
      expect([status, stderr.toString()]).toEqual([0, expect.not.stringContaining('[warning]')]);
    },
  );

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
