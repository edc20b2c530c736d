import { createHash } from 'node:crypto';
import { problems } from '../../src/problems';
import { ask } from '../support/http';
import { startService, type Service } from '../support/service';

const HTML = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

/** The text between tags, as a browser shows it. */
const shownBy = (html: string): string =>
  html
    .replaceAll(/<(style|script)[^>]*>.*?<\/\1>/gs, '')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));

describe('the HTML pages', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService();
  });

  const open = (path: string) => ask(`${service.url}${path}`, { headers: HTML });

  it.each(['/', '/docs', '/openapi.json', '/problems', '/problems/not_found'])(
    '%s supports GET and HEAD, as OPTIONS with a key states',
    async (path) => {
      const url = `${service.url}${path}`;
      for (const method of ['OPTIONS', 'POST', 'PUT', 'DELETE', 'PATCH']) {
        expect((await ask(url, { method })).status).toBe(401);
        const { status, headers } = await ask(url, { method, key: service.key });
        const expected = [method === 'OPTIONS' ? 204 : 405, 'GET, HEAD, OPTIONS'];
        expect([status, headers.get('allow')]).toEqual(expected);
      }
    },
  );

  it.each(['/problems/nonsense', '//', '/docs//'])('%s is not a page', async (path) => {
    for (const method of ['GET', 'OPTIONS'])
      expect((await ask(`${service.url}${path}`, { method, key: service.key })).status).toBe(404);
  });

  it.each(['/', '/docs', '/problems', '/problems/not_found'])(
    '%s needs no key, loads nothing and has nothing inline that its policy does not name',
    async (path) => {
      const { status, text, headers } = await open(path);
      expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      expect(text).not.toMatch(/<img|<link|<iframe|<form|javascript:|\son[a-z]+=|style="|src=/i);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/^default-src 'none'; /);
      const inline = [...text.matchAll(/<(style|script)[^>]*>(.*?)<\/\1>/gs)];
      expect(inline.map(([, element]) => element)).toEqual(
        path === '/docs' ? ['style', 'script'] : ['style'],
      );
      for (const [, element = '', content = ''] of inline) {
        const digest = createHash('sha256').update(content).digest('base64');
        expect(policy).toContain(`${element}-src 'sha256-${digest}';`);
      }
      expect(text).toContain('<meta name="viewport" content="width=device-width, initial-scale=1"');
    },
  );

  it.each(['/', '/docs', '/problems', '/problems/not_found'])('%s has only links that work', async (path) => {
    const { text } = await open(path);
    const links = Array.from(text.matchAll(/href="([^"]*)"/g), ([, link = '']) => link);
    expect(links.length).toBeGreaterThan(3);
    for (const link of new Set(links)) {
      if (link.startsWith('#')) expect(text).toContain(`id="${link.slice(1)}"`);
      else expect((await open(link)).status).toBe(200);
    }
  });

  it('are replaced by JSON at / and /problems for programs', async () => {
    const home = await ask(`${service.url}/`);
    expect(home.json).toEqual({
      name: 'tenant-ledger',
      version: '0.1.0',
      docs: '/docs',
      openapi: '/openapi.json',
      problems: '/problems',
    });
    const list = await ask(`${service.url}/problems`);
    expect(list.json.data.map(({ code }: { code: string }) => code)).toEqual(Object.keys(problems));
    expect(list.headers.get('vary')).toMatch(/accept/i);
  });

  it('document every operation, with a curl command that works as printed', async () => {
    const { json: document } = await ask(`${service.url}/openapi.json`);
    const { text } = await open('/docs');
    const samples = text.matchAll(/<pre [^>]*data-language="curl"[^>]*>(.*?)<\/pre>/gs);
    const lines = Array.from(samples, ([, sample = '']) => shownBy(sample));
    const operations = Object.entries<Record<string, unknown>>(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => ({ method, path })),
    );
    expect(lines).toHaveLength(operations.length);
    for (const [at, line] of lines.entries()) {
      const [, method = 'GET'] = / -X ([A-Z]+)/.exec(line) ?? [];
      const [, path = ''] = /"\$URL([^"]*)"/.exec(line) ?? [];
      const [, body] = / -d '(.*)'$/.exec(line) ?? [];
      if (method === 'DELETE') continue; // nothing would work after it
      const { status } = await ask(`${service.url}${path}`, {
        method,
        ...(line.includes('$KEY') ? { key: service.key } : {}),
        ...(body === undefined ? {} : { body: JSON.parse(body) as object }),
      });
      // An id in a path is only an example.
      const expected = /[0-9a-f]{8}-/.test(path) ? 404 : method === 'POST' ? 201 : 200;
      expect({ at, line, status }).toEqual({ at, line, status: expected });
    }
  });
});
