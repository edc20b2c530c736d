import { readFileSync } from 'node:fs';
import { beside, type Beside } from '../support/beside';
import { filesWith } from '../support/found-text';
import { ask, type ApiResponse } from '../support/http';
import { converse, sendRaw } from '../support/raw';
import { command, serviceProcess, type ServiceProcess } from '../support/service';
import { until } from '../support/waiting';

/**
 * Sends a key in every place where it does not belong, then searches everything the process has written for it: stdout
 * and stderr, every file, every event, every response.
 */
describe('an API key, shown only in the line that prints it', () => {
  let service: ServiceProcess;
  let by: Beside;
  let canary: string;
  let tenantId: string;
  let keyId: string;
  const answers: string[] = [];

  const seen = ({ status, headers, text }: ApiResponse): void =>
    void answers.push(`${status} ${JSON.stringify([...headers])} ${text}`);

  /** The key as issued, and as a person or a program may have mistyped or truncated it. */
  const mangled = (): readonly string[] => {
    const at = (place: number, other: string) =>
      `${canary.slice(0, place)}${other}${canary.slice(place + 1)}`;
    return [
      canary,
      at(0, 'K'),
      at(2, 'i'),
      at(3, '-'),
      at(4, canary[4] === 'a' ? 'b' : 'a'),
      at(58, canary[58] === 'a' ? 'b' : 'a'),
      canary.slice(4),
      canary.slice(0, -1),
      `${canary}a`,
    ];
  };
  /** The variants that are recognised as keys in text that would be stored; the others could be somebody's name. */
  const recognised = (): readonly string[] => mangled().filter((text) => text.startsWith('key_'));
  /** None of these may turn up: a whole key, its secret part, or most of it. */
  const secrets = (): readonly string[] => [
    canary,
    canary.slice(4),
    canary.slice(26, 53),
    canary.slice(5, 55),
  ];

  beforeAll(async () => {
    service = await serviceProcess({ LOG_LEVEL: 'trace' });
    by = await beside(service);
    ({ tenantId } = await by.newTenant());
    const all = ['tenant:read', 'tenant:update', 'tenant:delete', 'log:read', 'report:read'];
    all.push('application:read', 'application:create', 'application:update');
    ({ key: canary, keyId } = await by.newApplication(tenantId, 'management', ...all));
  });

  it('is sent in every part of a request', async () => {
    const call = async (path: string, headers: Record<string, string> = {}, method = 'GET', body?: unknown) =>
      seen(await ask(`${service.url}${path}`, { key: canary, method, headers, body }));
    for (const text of mangled()) {
      for (const path of [
        `/${text}`,
        `/tenants/${text}`,
        `/tenants/self?api_key=${text}`,
        `/tenants/self?${text}[x]=1`,
        `/tenants/self?${text}=1&${text}=2`,
        `/permissions?application_type=${text}`,
        `/logs?start=${text}`,
        `/logs?start_date=${text}&page=${text}`,
        `/logs?entity_type=${text}&entity_id=${text}`,
        `/problems/${text}`,
        `/%zz${text}`,
        `/events?after=${text}&type=${text}&key_id=${text}`,
        `/events?limit=${text}`,
        `/events/${text}`,
        `/tenants/self?as_of=${text}`,
        `/applications?id=${text}`,
        `/applications?start=${text}&type=${text}`,
        `/applications/${text}`,
        `/applications/${text}/keys/${text}`,
      ])
        await call(path);
      for (const method of ['PUT', 'DELETE', 'POST', 'OPTIONS']) await call(`/${text}`, {}, method, {});
      for (const header of [
        'If-None-Match',
        'Authorization',
        'BT-API-KEY',
        'X-Forwarded-For',
        'X-Request-Id',
        'User-Agent',
        'Referer',
        'Cookie',
        'Accept',
        'Accept-Encoding',
        'Host',
        'Origin',
        'Forwarded',
        'Last-Event-ID',
        'traceparent',
        'tracestate',
      ])
        await call('/tenants/self', { [header]: text });
      for (const header of ['If-Match', 'Content-Type', 'Content-Encoding'])
        await call('/tenants/self', { [header]: text }, 'PUT', { name: 'Named' });
      for (const body of [
        text,
        JSON.stringify(text),
        JSON.stringify({ name: 'A', [text]: text }),
        JSON.stringify({ name: 'A', settings: { [text]: text } }),
        JSON.stringify({ name: 'A', settings: { fingerprint_tokens: text } }),
        JSON.stringify({ name: 'A', settings: text }),
      ])
        await call('/tenants/self', {}, 'PUT', body);
      for (const body of [
        { name: 'A', type: text },
        { name: 'A', type: 'private', permissions: [text] },
        { name: 'A', type: 'private', expires_at: text, create_key: text },
      ])
        await call('/applications', {}, 'POST', body);
      seen(await ask(`${service.url}/tenants/self`, { key: text }));
      seen(await ask(`${service.url}/tenants/self`, { key: text, method: 'PUT', body: { name: 'B' } }));
    }
    for (const text of recognised()) {
      await call('/tenants/self', { 'SVC-TRACE-ID': text });
      await call('/nowhere', { 'SVC-TRACE-ID': text });
      await call('/tenants/self', { 'SVC-TRACE-ID': text }, 'PUT', { name: 'Traced' });
      for (const header of ['SVC-IDEMPOTENCY-KEY', 'Idempotency-Key'])
        await call('/tenants/self', { [header]: text }, 'PUT', { name: 'Named' });
      for (const name of [text, `My key is ${text}.`]) await call('/tenants/self', {}, 'PUT', { name });
    }
    expect(answers.length).toBeGreaterThan(300);
  });

  it('is sent in bytes that are not a valid request', async () => {
    for (const text of mangled())
      for (const bytes of [
        `GET /${text} HTTP/9.9\r\n\r\n`,
        `${text}\r\n\r\n`,
        `GET /x HTTP/1.1\r\nHost: x\r\n${text}\r\n\r\n`,
        `GET /x HTTP/1.1\r\nHost: x\r\n${text}: ${text}\r\nContent-Length: ${text}\r\n\r\n`,
        ...[
          `a://x/${text}`,
          `http://x:port/${text}`,
          `http://[/${text}`,
          `//${text}@x:port/#`,
          `*${text}`,
        ].map((target) => `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
        ...['Expect', 'Upgrade', 'Connection', 'Transfer-Encoding', 'Keep-Alive'].map(
          (header) =>
            `PUT /tenants/self HTTP/1.1\r\nHost: x\r\n${header}: ${text}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
        ),
        `CONNECT ${text}:80 HTTP/1.1\r\nHost: x\r\n\r\n`,
      ])
        for (const response of await sendRaw(service.url, bytes)) seen(response);
    const cut = converse(service.url);
    cut.socket.write(
      `PUT /${canary} HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${canary}\r\nContent-Length: 9\r\n\r\n`,
    );
    cut.socket.write('{"x', () => cut.socket.resetAndDestroy());
    await cut.closed;
    for (const path of [`/${canary}`, `/readyz?${canary}`, '/livez'])
      seen(await ask(`${service.operationsUrl}${path}`, { key: canary }));
  });

  it('is sent to commands', async () => {
    const run = async (...args: readonly string[]) => {
      const { stdout, stderr } = await command(args, { DATA_DIR: service.folder });
      answers.push(stdout, stderr);
    };
    await run('tenant', 'show', canary);
    await run('tenant', 'create', '--name', canary);
    await run(canary);
    await run('key', 'revoke', canary, '--tenant', tenantId);
    await run('key', 'list', '--tenant', tenantId);
    await run('audit', '--tenant', tenantId, '--trace', canary);
  });

  it('appears in no response', () => {
    for (const secret of secrets()) expect(answers.filter((text) => text.includes(secret))).toEqual([]);
  });

  it('does not appear in the command line, name or environment of the process', () => {
    if (process.platform !== 'linux') return;
    const shown = ['cmdline', 'comm', 'environ'].map((name) =>
      readFileSync(`/proc/${service.process.pid}/${name}`, 'utf8'),
    );
    for (const secret of secrets()) expect(shown.join()).not.toContain(secret);
  });

  it('appears in no log line, file or event, neither while the server runs nor after it stops', async () => {
    // The event log is in these files or in an event store, so read the events as well.
    const events = async (): Promise<string> => JSON.stringify(await by.events());
    const search = async (): Promise<void> => {
      const logged = await events();
      for (const secret of secrets()) {
        expect(logged.includes(secret)).toBe(false);
        expect(service.stdout().includes(secret)).toBe(false);
        expect(
          service
            .stderr()
            .split('\n')
            .filter((line) => line.includes(secret)),
        ).toEqual([]);
        expect(filesWith(secret, service.folder)).toEqual([]);
      }
    };
    await until(async () => {
      const uses = await by.run<{ key_id: string; last_used_at: string | null }[]>(
        'key',
        'list',
        '--tenant',
        tenantId,
      );
      return uses.some((row) => row.key_id === keyId && row.last_used_at !== null);
    });
    await search();
    // Proof that the search works: it does find the key's id and the names that were written.
    expect(await events()).toMatch(new RegExp(`${keyId}.*Traced`));
    expect(filesWith(keyId, service.folder).length).toBeGreaterThan(1);
    expect(filesWith('Traced', service.folder).length).toBeGreaterThan(0);
    expect(await service.stop()).toBe(0);
    await search();
    expect(service.stderr()).not.toMatch(/"level":50/);
  });

  it('appears only on stdout if it is the first key', () => {
    expect(service.stdout()).toContain(service.key);
    expect(service.stderr()).not.toContain(service.key);
    expect(filesWith(service.key, service.folder)).toEqual([]);
  });

  it('is printed in one line by the command that creates it', async () => {
    const { stdout, stderr } = await command(
      ['application', 'create', '--tenant', tenantId, '--name', 'N', '--type', 'public'],
      { DATA_DIR: service.folder },
    );
    const lines = stdout.split('\n').filter((line) => /key_[0-9A-Za-z]{55}/.test(line));
    expect([lines.length, stderr]).toEqual([1, '']);
    const key = /key_[0-9A-Za-z]{55}/.exec(lines[0] ?? '')?.[0] ?? '';
    expect(filesWith(key, service.folder)).toEqual([]);
  });
});
