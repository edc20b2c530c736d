import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

const FOLDER = join(__dirname, '..', '..', 'portal');

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export interface PortalFile {
  readonly type: string;
  readonly body: Buffer;
}

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
<head>
<meta charset="utf-8">
<title>Tenant Ledger</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${pathOf('.svg')}">
<link rel="stylesheet" href="${pathOf('.css')}">
<script type="module" src="${pathOf('.js')}"></script>
</head>
<body>
<div id="app"><noscript>The portal needs JavaScript. Everything it shows is also in the API.</noscript></div>
</body>
</html>
`;

/** What the browser gets, as built from `portal/`: one file of each type. */
export const portalFiles = () => {
  const files = new Map(
    readdirSync(FOLDER).map((name) => [
      `/portal/files/${name}`,
      { type: TYPES[extname(name)] ?? '', body: readFileSync(join(FOLDER, name)) },
    ]),
  );
  const pathOf = (ending: string): string => [...files.keys()].find((path) => path.endsWith(ending)) ?? '';
  return {
    /** The page that loads everything else. */
    page: { type: 'text/html; charset=utf-8', body: Buffer.from(pageOf(pathOf)) },
    /** Its `Content-Security-Policy`. */
    policy: POLICY,
    /** By its path, which has a digest of its content, so what is at it never changes. */
    file: (path: string) => files.get(path),
  };
};

export type PortalFiles = ReturnType<typeof portalFiles>;
