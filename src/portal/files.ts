import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiContext } from '../http/context';

const FOLDER = join(__dirname, '..', '..', 'portal');
export const FILES = '/portal/files/';

/** No inline script; styles come with the script, the icon with the page. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const ICON = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1d4ed8"/><path d="M4 4.5h8M4 8h8M4 11.5h5" stroke="#fff" stroke-width="1.6" stroke-linecap="round"/></svg>',
);

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');

const pageOf = (script: string, session: object): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Tenant Ledger</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:image/svg+xml,${ICON}">
<script type="module" src="${script}"></script>
<div id="app" data-session="${escaped(JSON.stringify(session))}"><noscript>The portal needs JavaScript. Everything it shows is also in the API.</noscript></div>
</html>
`;

/** What the browser gets, as built from `portal/`: the script, and pages that load it. */
export const portalFiles = () => {
  const name = readdirSync(FOLDER).find((one) => one.endsWith('.js')) ?? '';
  const [path, script] = [FILES + name, readFileSync(join(FOLDER, name))];
  return {
    /** It has a digest of its content in its name, so it never changes. */
    sendScript: (ctx: ApiContext, next: () => Promise<unknown>): unknown => {
      if (ctx.state.path !== path) return next();
      ctx.state.route = '/portal/files';
      ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
      ctx.type = 'js';
      return (ctx.body = script);
    },
    /** `session`: whose it is, if that is known. */
    sendPage: (ctx: ApiContext, session: object): void => {
      ctx.state.route = '/portal';
      ctx.set({ 'Cache-Control': 'no-store', 'Content-Security-Policy': POLICY });
      ctx.type = 'html';
      ctx.body = pageOf(path, session);
    },
  };
};

export type PortalFiles = ReturnType<typeof portalFiles>;
