import { problems, type Problem } from '../../src/problems';
import { ask } from '../support/http';
import { serviceForTests } from '../support/service';

describe('what needs no key', () => {
  const service = serviceForTests();
  const open = (path: string, method = 'GET') => ask(`${service.url}${path}`, { method });

  it('leads from / to the API reference', async () => {
    const { status, headers } = await open('/');
    expect([status, headers.get('location')]).toEqual([302, '/docs']);
  });

  it.each(['/', '/docs', '/docs/start.js', '/openapi.json', '/problems/not_found'])(
    'supports GET and HEAD of %s, and nothing else',
    async (path) => {
      const whole = await open(path);
      const head = await open(path, 'HEAD');
      expect([head.status, head.text]).toEqual([whole.status, '']);
      expect(head.headers.get('content-type')).toBe(whole.headers.get('content-type'));
      expect(whole.headers.get('cache-control')).toBe('public, max-age=3600');
      for (const method of ['OPTIONS', 'POST', 'PUT', 'DELETE', 'PATCH']) {
        const { status, headers } = await open(path, method);
        const expected = [method === 'OPTIONS' ? 204 : 405, 'GET, HEAD, OPTIONS'];
        expect([status, headers.get('allow')]).toEqual(expected);
      }
    },
  );

  it.each(['/docs//', '/docs/package.json', '/docs/%2e%2e/start.js', '/problems'])(
    'does not contain %s',
    async (path) => {
      for (const method of ['GET', 'OPTIONS'])
        expect((await ask(`${service.url}${path}`, { method, key: service.key })).status).toBe(404);
    },
  );

  it('has a reference that loads its own files only, none of them inline', async () => {
    const { text, headers } = await open('/docs/');
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    );
    const loaded = [...text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path = '']) => path);
    const types = await Promise.all(
      loaded
        .filter((path) => path !== 'data:,')
        .map(async (path) => {
          const file = await open(path);
          return [path, file.status, file.headers.get('content-type')];
        }),
    );
    expect(types).toEqual([
      ['/docs/swagger-ui.css', 200, 'text/css; charset=utf-8'],
      ['/docs/swagger-ui-bundle.js', 200, 'text/javascript; charset=utf-8'],
      ['/docs/start.js', 200, 'text/javascript; charset=utf-8'],
    ]);
    expect(text).not.toMatch(/<style|<script>|style="|\son[a-z]+=/);
  });

  it('has a page of every problem', async () => {
    const shown = (text: string): string =>
      text
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll(/`([^`]*)`/g, '<code>$1</code>');
    for (const [code, problem] of Object.entries<Problem>(problems)) {
      const { status, text, headers } = await open(`/problems/${code}`);
      expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
      for (const part of [`<code>${code}</code>`, shown(problem.title), shown(problem.meaning)])
        expect(text).toContain(part);
    }
  });
});
