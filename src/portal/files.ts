import { createHash, hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

const FOLDER = join(__dirname, '..', '..', 'portal');

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const VENDOR = {
  preact: 'preact.js',
  'preact/hooks': 'hooks.js',
  'preact/jsx-runtime': 'jsx-runtime.js',
  '@preact/signals': 'signals.js',
  '@preact/signals-core': 'signals-core.js',
};

export interface PortalFile {
  readonly type: string;
  readonly body: Buffer;
}

/** No inline script or style but the import map, whose hash is given. */
const policyOf = (importMap: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash('sha256', importMap, 'base64')}'`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');

const pageOf = (base: string, scripts: readonly string[], importMap: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Tenant Ledger</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${base}/icon.svg">
<link rel="stylesheet" href="${base}/portal.css">
<script type="importmap">${importMap}</script>
${scripts.map((script) => `<link rel="modulepreload" href="${base}/${script}">`).join('\n')}
<script type="module" src="${base}/main.js"></script>
</head>
<body>
<div id="app"><noscript>The portal needs JavaScript. Everything it shows is also in the API.</noscript></div>
</body>
</html>
`;

/** What the browser gets, as built from `portal/`. */
export const portalFiles = () => {
  const names = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => TYPES[extname(name)] !== undefined)
    .toSorted();
  const contents = names.map((name) => [name, readFileSync(join(FOLDER, name))] as const);
  const digest = createHash('sha256');
  for (const [name, body] of contents) digest.update(`${name} ${body.length}\n`).update(body);
  const base = `/portal/files/${digest.digest('hex').slice(0, 16)}`;
  const files = new Map(
    contents.map(([name, body]) => [`${base}/${name}`, { type: TYPES[extname(name)] ?? '', body }]),
  );
  const imports = Object.fromEntries(
    Object.entries(VENDOR).map(([name, file]) => [name, `${base}/vendor/${file}`]),
  );
  const importMap = JSON.stringify({ imports });
  const scripts = names.filter((name) => name.endsWith('.js'));
  return {
    /** The page that loads everything else. */
    page: { type: 'text/html; charset=utf-8', body: Buffer.from(pageOf(base, scripts, importMap)) },
    /** Its `Content-Security-Policy`. */
    policy: policyOf(importMap),
    /** By its path, which has a digest of all files, so what is at it never changes. */
    file: (path: string) => files.get(path),
  };
};

export type PortalFiles = ReturnType<typeof portalFiles>;
