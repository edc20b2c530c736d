import type Router from '@koa/router';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fault } from '../fault';
import { isProblemCode, problems, type Problem } from '../problems';
import type { ApiContext, ApiState } from './context';
import type { Schema } from './schema';

/** What needs no key: the API reference, the OpenAPI document that it shows, and the page of every problem. */

const htmlPage = (title: string, head: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
${head}
</head>
<body>
${body}
</body>
</html>
`;

const FRAMELESS = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const policyOf = (...allowed: readonly string[]): string =>
  ["default-src 'none'", ...allowed, FRAMELESS].join('; ');

const REFERENCE = htmlPage(
  'API reference',
  '<link rel="stylesheet" href="/docs/swagger-ui.css">',
  `<div id="viewer"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>`,
);

const START = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#viewer', deepLinking: true, filter: true });
`;

/** Swagger UI, as the build copied it. */
const viewerFile = (name: string): Buffer => readFileSync(join(__dirname, '..', '..', 'swagger-ui', name));

const STYLE =
  ':root { color-scheme: light dark; } body { margin: 2rem auto; max-width: 40rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** The page that the `type` of an error links to. */
const problemPage = (code: string, { status, title, meaning }: Problem): string =>
  htmlPage(
    escaped(title),
    `<style>${STYLE}</style>`,
    `<h1>${escaped(title)}</h1>
<p>Code <code>${code}</code>, ${status === undefined ? 'at the command line' : `status ${status}`}.</p>
<p>${escaped(meaning).replaceAll(/`([^`]*)`/g, '<code>$1</code>')}</p>
<p><a href="/docs">API reference</a></p>`,
  );

const POLICIES = {
  reference: policyOf("script-src 'self'", "style-src 'self'", "connect-src 'self'", 'img-src data:'),
  problem: policyOf(`style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`, 'img-src data:'),
};

const sendPage = (ctx: ApiContext, type: string, body: string | Buffer, policy?: string): void => {
  ctx.body = body;
  ctx.type = type;
  if (policy !== undefined) ctx.set('Content-Security-Policy', policy);
  ctx.set('Cache-Control', 'public, max-age=3600');
};

const nothingAt = (path: string) => fault('not_found', `There is nothing at ${path}.`);

const sendProblemPage = (ctx: ApiContext, code: string): void => {
  if (!isProblemCode(code)) throw nothingAt(ctx.state.path);
  sendPage(ctx, 'html', problemPage(code, problems[code]), POLICIES.problem);
};

export const routeDocs = (router: Router<ApiState>, openApiDocument: () => Schema): void => {
  const bundle = viewerFile('swagger-ui-bundle.js');
  const styles = viewerFile('swagger-ui.css');
  let document: string | undefined;
  const documentText = (): string => (document ??= JSON.stringify(openApiDocument()));
  const page = (path: string, answer: (ctx: ApiContext) => void, route = path): void =>
    void router.get(path, (ctx) => {
      ctx.state.route = route;
      answer(ctx);
    });

  page('/', (ctx) => {
    // The router takes `//` for it.
    if (ctx.path !== '/') throw nothingAt(ctx.path);
    ctx.redirect('/docs');
    ctx.set('Cache-Control', 'public, max-age=3600');
  });
  page('/docs', (ctx) => sendPage(ctx, 'html', REFERENCE, POLICIES.reference));
  page('/docs/start.js', (ctx) => sendPage(ctx, 'js', START), '/docs');
  page('/docs/swagger-ui-bundle.js', (ctx) => sendPage(ctx, 'js', bundle), '/docs');
  page('/docs/swagger-ui.css', (ctx) => sendPage(ctx, 'css', styles), '/docs');
  page('/openapi.json', (ctx) => sendPage(ctx, 'json', documentText()));
  page('/problems/:code', (ctx) => sendProblemPage(ctx, String(ctx['params'].code)));
};
