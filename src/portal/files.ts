import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { ApiMiddleware } from '../http/context';

const FOLDER = join(__dirname, '..', '..', 'portal');
const FILES = '/portal/files/';

/** No inline script or style. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const pageOf = (pathOf: (ending: string) => string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Tenant Ledger</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${pathOf('.svg')}">
<link rel="stylesheet" href="${pathOf('.css')}">
<script type="module" src="${pathOf('.js')}"></script>
<div id="app"><noscript>The portal needs JavaScript. Everything it shows is also in the API.</noscript></div>
</html>
`;

/**
 * What the browser gets, as built from `portal/`: one file of each type, and the page that loads them. A file has a digest
 * of its content in its name, so it never changes. All other paths are pages of the portal.
 */
export const portalFiles = (): ApiMiddleware => {
  const files = new Map(readdirSync(FOLDER).map((name) => [FILES + name, readFileSync(join(FOLDER, name))]));
  const page = pageOf((ending) => [...files.keys()].find((path) => path.endsWith(ending)) ?? '');
  return async (ctx, next) => {
    const { path } = ctx.state;
    const file = files.get(path);
    if (file === undefined && path.startsWith(FILES)) return next();
    ctx.state.route = file === undefined ? '/portal' : '/portal/files';
    ctx.set('Cache-Control', file === undefined ? 'no-cache' : 'public, max-age=31536000, immutable');
    if (file === undefined) ctx.set('Content-Security-Policy', POLICY);
    ctx.type = file === undefined ? 'html' : extname(path);
    ctx.body = file ?? page;
    return undefined;
  };
};
