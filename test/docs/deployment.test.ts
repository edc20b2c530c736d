import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { settingNames } from '../../src/configuration';
import { freshFolder } from '../support/folders';

const FOLDER = join(__dirname, '..', '..', '..', 'docs', 'deployment');
const textOf = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

const has = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;
const itWith = (isThere: boolean): jest.It => (isThere ? it : it.skip);

describe('the examples in docs/deployment', () => {
  it('name only settings that exist', () => {
    const [, variables = ''] = /^Environment=(.*)$/m.exec(textOf('tenant-ledger.service')) ?? [];
    const names = variables.split(' ').map((one) => one.split('=')[0]);
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) expect([...settingNames, 'NODE_ENV']).toContain(name);
    for (const file of ['nginx.conf', 'Caddyfile', 'envoy.yaml'])
      expect(textOf(file)).toContain('TRUSTED_PROXIES=1');
  });

  it('envoy.yaml is YAML', () => {
    expect(parseAllDocuments(textOf('envoy.yaml')).flatMap((document) => document.errors)).toEqual([]);
  });

  itWith(has('nginx', '-v') && has('openssl', 'version'))('nginx -t accepts nginx.conf', () => {
    const folder = freshFolder();
    const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
    const request = `req -x509 -newkey rsa:2048 -nodes -subj /CN=api.example.com -keyout ${key} -out ${certificate}`;
    expect(spawnSync('openssl', request.split(' ')).status).toBe(0);
    const server = textOf('nginx.conf')
      .replace(/ssl_certificate .*;/, `ssl_certificate ${certificate};`)
      .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`);
    const whole = join(folder, 'nginx.conf');
    writeFileSync(
      whole,
      `pid ${folder}/nginx.pid; error_log ${folder}/error.log; events {}\nhttp {\n${server}\n}\n`,
    );
    const { status, stderr } = spawnSync('nginx', ['-t', '-p', folder, '-c', whole]);
    expect([status, stderr.toString()]).toEqual([0, expect.stringContaining('test is successful')]);
  });

  itWith(has('systemd-analyze', '--version'))('systemd-analyze accepts tenant-ledger.service', () => {
    const { status, stderr } = spawnSync('systemd-analyze', [
      'verify',
      join(FOLDER, 'tenant-ledger.service'),
    ]);
    expect([status, stderr.toString()]).toEqual([0, '']);
  });
});
