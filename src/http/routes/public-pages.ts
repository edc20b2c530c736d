import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { problems, type Problem } from '../../problems';
import type { Step } from '../context';
import { answerOtherMethod } from './routing';
import type { Schema } from './schema';

/** What needs no key: the API reference, the OpenAPI document that it shows, and the page of every problem. */
interface PublicPage {
  /** For the access log and the metrics. */
  readonly route: string;
  readonly type: string;
  /** The `Content-Security-Policy` of HTML. */
  readonly policy?: string;
  readonly body: () => string | Buffer;
}

const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';
const STYLES = 'text/css; charset=utf-8';

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

const policyOf = (...allowed: readonly string[]): string =>
  ["default-src 'none'", ...allowed, "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"].join(
    '; ',
  );

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
const viewerFile = (name: string, type: string): readonly [string, PublicPage] => {
  let body: Buffer | undefined;
  const file = join(__dirname, '..', '..', '..', 'swagger-ui', name);
  return [`/docs/${name}`, { route: '/docs', type, body: () => (body ??= readFileSync(file)) }];
};

const STYLE =
  ':root { color-scheme: light dark; } body { margin: 2rem auto; max-width: 40rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** The page that the `type` of an error links to. */
const problemPage = ([code, problem]: readonly [string, Problem]): readonly [string, PublicPage] => {
  const { status, title, meaning } = problem;
  const body = `<h1>${escaped(title)}</h1>
<p>Code <code>${code}</code>, ${status === undefined ? 'at the command line' : `status ${status}`}.</p>
<p>${escaped(meaning).replaceAll(/`([^`]*)`/g, '<code>$1</code>')}</p>
<p><a href="/docs">API reference</a></p>`;
  return [
    `/problems/${code}`,
    {
      route: '/problems/:code',
      type: HTML,
      policy: policyOf(`style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`, 'img-src data:'),
      body: () => htmlPage(escaped(title), `<style>${STYLE}</style>`, body),
    },
  ];
};

const pagesWith = (openApiDocument: () => Schema): ReadonlyMap<string, PublicPage> => {
  let document: string | undefined;
  return new Map<string, PublicPage>([
    [
      '/docs',
      {
        route: '/docs',
        type: HTML,
        policy: policyOf("script-src 'self'", "style-src 'self'", "connect-src 'self'", 'img-src data:'),
        body: () => REFERENCE,
      },
    ],
    ['/docs/start.js', { route: '/docs', type: SCRIPT, body: () => START }],
    viewerFile('swagger-ui-bundle.js', SCRIPT),
    viewerFile('swagger-ui.css', STYLES),
    [
      '/openapi.json',
      {
        route: '/openapi.json',
        type: 'application/json; charset=utf-8',
        body: () => (document ??= JSON.stringify(openApiDocument())),
      },
    ],
    ...Object.entries(problems).map(problemPage),
  ]);
};

export const servePublicPages = (openApiDocument: () => Schema): Step => {
  const pages = pagesWith(openApiDocument);
  return async (ctx, next) => {
    const { path } = ctx.state;
    const page = pages.get(path);
    if (page === undefined && path !== '/') return next();
    ctx.state.route = page?.route ?? path;
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return answerOtherMethod(ctx, ['GET', 'HEAD']);
    if (page === undefined) ctx.redirect('/docs');
    else {
      ctx.body = page.body();
      ctx.type = page.type;
      if (page.policy !== undefined) ctx.set('Content-Security-Policy', page.policy);
    }
    ctx.set('Cache-Control', 'public, max-age=3600');
  };
};
