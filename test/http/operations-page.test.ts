import { createHash } from 'node:crypto';
import { operationsPage, type OperationsView } from '../../src/http/pages/operations-page';
import { isOwnHost } from '../../src/http/request/own-host';
import { beside } from '../support/beside';
import { ask } from '../support/http';
import { sendRaw } from '../support/raw';
import { fact, reportFacts } from '../support/reported-facts';
import { command, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

/** The text between tags, as a browser shows it. */
const shownBy = (html: string): string =>
  html
    .replace(/<style>.*?<\/style>/s, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replaceAll(/\s+/g, ' ');

describe("the operator's page", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ RATE_LIMITS: 'global=3/10/1' });
  });

  const open = async () => {
    const { status, text, headers } = await ask(`${service.operationsUrl}/`);
    return { status, html: text, text: shownBy(text), headers };
  };

  it('shows the stores, the projections, the limits and the event loop, as /readyz does', async () => {
    const { status, text, headers } = await open();
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers.get('cache-control')).toBe('no-store');
    const { json } = await ask(`${service.operationsUrl}/readyz`);
    expect(text).toContain('It is ready.');
    for (const value of [json.log.store, json.log.identity, json.log.head, json.projector])
      expect(text).toContain(value);
    for (const { projection, generation, position } of json.projections)
      expect(text).toContain(`${projection} ${generation} ${position} 0 events, 0.0 s 0 tenants`);
    expect(text).toContain(`Read models ${service.folder}/read-models`);
    expect(text).toContain('Parked tenants None.');
    expect(text).toContain('Rebuilds None is running.');
    expect(text).toMatch(/99 of 100 turns, at most [0-9.]+ ms The longest [0-9.]+ ms/);
  });

  it('counts blocks', async () => {
    expect((await open()).text).toContain('Blocks since the start 0');
    for (let i = 0; i < 5; i += 1) await fetch(`${service.url}/docs`);
    expect((await open()).text).toContain('Blocks since the start 1');
  });

  it('shows parked tenants with the ways out', async () => {
    const by = await beside(service);
    const tenantId = await by.tenantId();
    const [eventId = ''] = await reportFacts(service.folder, tenantId, [fact('NeverHeardOf', '<b>x</b>')]);
    await until(async () => (await open()).text.includes(`projections set-aside ${eventId}`));
    const { text } = await open();
    expect(text).toContain(`tenant-ledger projections retry --tenant ${tenantId}`);
    expect(text).toContain(`tenant-ledger projections set-aside ${eventId} --reason "REASON"`);
  });

  it('changes nothing, loads nothing and runs no script', async () => {
    const { html, headers } = await open();
    expect(html).not.toMatch(
      /<script|<img|<link|<iframe|<form|<button|<input|http-equiv|javascript:|\son[a-z]+=/i,
    );
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(html) ?? [];
    const digest = createHash('sha256').update(style).digest('base64');
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${digest}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`,
    );
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await ask(`${service.operationsUrl}/`, { method })).status).toBe(405);
    expect(await ask(`${service.operationsUrl}/`, { method: 'HEAD' })).toMatchObject({
      status: 200,
      text: '',
    });
  });

  it('has only links that work, and commands that exist', async () => {
    const { html } = await open();
    for (const [, path = ''] of html.matchAll(/href="([^"]+)"/g))
      expect([path, (await fetch(`${service.operationsUrl}${path}`)).status]).toEqual([path, 200]);
    const lines = [...html.matchAll(/<code>tenant-ledger ([^<]+)<\/code>/g)].map(([, line = '']) => line);
    expect(lines.length).toBeGreaterThan(5);
    for (const line of lines) {
      const { code, stdout } = await command([...line.split(' '), '--help'], {});
      const [words = ''] = /^[a-z]+( [a-z][a-z-]*(?= |$))*/.exec(line) ?? [];
      expect([line, code, stdout]).toEqual([
        line,
        0,
        expect.stringMatching(new RegExp(`^Usage: tenant-ledger ${words}( |$)`, 'm')),
      ]);
      for (const [option] of line.matchAll(/--[a-z-]+/g)) expect(stdout).toContain(option);
    }
  });

  it('is not shown under a name that another site could have pointed here', async () => {
    const asked = 'GET / HTTP/1.1\r\nHost: localhost.evil.example\r\nConnection: close\r\n\r\n';
    const [response] = await sendRaw(service.operationsUrl, asked);
    expect(response?.status).toBe(421);
    expect(response?.text).not.toContain(service.folder);
  });
});

describe('a host of our own', () => {
  it.each([
    'localhost',
    'localhost:8081',
    'ops.localhost:1',
    '127.0.0.1:8081',
    '[::1]:8081',
    '10.1.2.3',
    '[fd00::1]:80',
    'ops.internal:8081',
    'OPS.internal',
  ])('is %s', (host) => expect(isOwnHost(host, 'ops.internal')).toBe(true));
  it.each([
    undefined,
    '',
    ':8081',
    'evil.example',
    'evil.example:8081',
    'localhost.evil.example',
    'ops.internal.evil.example',
    '127.0.0.1.evil.example',
    '[evil]',
    '1.2.3.4.5',
  ])('is not %s', (host) => expect(isOwnHost(host, 'ops.internal')).toBe(false));
});

describe('what the page says', () => {
  const view: OperationsView = {
    version: '1',
    at: '2026-01-31T12:00:00.000Z',
    host: '127.0.0.1:8081',
    summary: 'It is unavailable: <why>',
    readModelStore: '/data/read-models',
    status: undefined,
    rebuilds: [],
    limits: undefined,
    eventLoop: { p99: 1, max: 20.25 },
  };
  const textOf = (more: Partial<OperationsView>): string => shownBy(operationsPage({ ...view, ...more }));

  it('while nothing is known', () => {
    expect(textOf({})).toContain('It is unavailable: <why>');
    expect(textOf({})).toContain('Projections Not known now.');
    expect(textOf({})).toContain('The longest 20.3 ms');
    expect(operationsPage(view)).not.toContain('<why>');
  });

  it('of rebuilds with their progress', () => {
    const rebuild = {
      projection: 'logs',
      holder: 'host 1',
      step: { step: 'indexing' },
      progress: 0.428,
    } as const;
    expect(textOf({ rebuilds: [rebuild] })).toContain('logs indexing 42 % host 1');
    expect(textOf({ rebuilds: [{ ...rebuild, step: undefined }] })).toContain('logs starting');
  });

  it('of damage, trouble and tenants that cannot be read', () => {
    const text = textOf({
      status: {
        log: { store: 'esdb://a', identity: 'i', head: null, trouble: 'The log was rolled back.' },
        projector: null,
        projections: [
          {
            projection: 'usage',
            generation: null,
            position: null,
            lag_events: 5,
            lag_seconds: 1.25,
            parked: [],
            damage: 'usage is damaged: rebuild it.',
          },
        ],
        decisions: {
          parked: [{ tenant_id: 'tenant-1', event_id: null, position: null, reason: 'Events are missing.' }],
        },
      },
    });
    for (const part of [
      'none: it is empty',
      'The log was rolled back.',
      'usage not built yet none 5 events, 1.3 s 0 tenants',
      'Projecting process: none.',
      'usage is damaged: rebuild it.',
      'decisions tenant-1',
      'Events are missing.',
      'tenant-ledger audit --tenant tenant-1',
    ])
      expect(text).toContain(part);
  });
});
