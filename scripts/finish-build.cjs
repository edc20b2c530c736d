'use strict';

// Completes what the compiler wrote to `dist`: removes outputs whose source is gone, and adds what browsers load.

const { buildSync } = require('esbuild');
const { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '..');
const dist = join(root, 'dist');
const portal = join(dist, 'portal');
const viewer = join(dist, 'swagger-ui');

const BUNDLED = {
  absWorkingDir: root,
  entryNames: '[name]-[hash]',
  outdir: portal,
  bundle: true,
  minify: true,
  charset: 'utf8',
  format: 'esm',
  target: 'es2022',
};

const STYLES = buildSync({ ...BUNDLED, entryPoints: ['portal/log.css'], write: false }).outputFiles[0].text;

/** One script with its libraries and style sheets. Its name has a digest of its content. */
const PORTAL = {
  ...BUNDLED,
  entryPoints: ['portal/main.tsx'],
  define: { STYLES: JSON.stringify(STYLES) },
};

/** The viewer of the API reference, and what its license wants to be given along. */
const VIEWER = [
  'swagger-ui.css',
  'swagger-ui-bundle.js',
  'swagger-ui-bundle.js.LICENSE.txt',
  'LICENSE',
  'NOTICE',
];

/** Of the libraries in the portal's script, as a comment to be given along with them. Equal texts are there once. */
const librariesAndLicenses = () => {
  const { metafile } = buildSync({ ...PORTAL, metafile: true, write: false });
  const paths = Object.keys(metafile.inputs).map(
    (file) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0],
  );
  const folders = [...new Set(paths)].filter((folder) => folder !== undefined).toSorted();
  const names = folders.map((folder) => folder.slice('node_modules/'.length)).join(', ');
  const licenses = new Set(
    folders.map((folder) => readFileSync(join(root, folder, 'LICENSE'), 'utf8').trim()),
  );
  return `/*!\nContains ${names}:\n\n${[...licenses].join('\n\n')}\n*/`;
};

for (const file of readdirSync(dist, { recursive: true })) {
  const source = /^(?!portal|swagger-ui)(.+)\.js(?:\.map)?$/.exec(file)?.[1];
  if (source !== undefined && !existsSync(join(root, `${source}.ts`))) rmSync(join(dist, file));
}

rmSync(portal, { recursive: true, force: true });
buildSync({ ...PORTAL, footer: { js: librariesAndLicenses() } });

mkdirSync(viewer, { recursive: true });
for (const name of VIEWER) copyFileSync(join(root, 'node_modules/swagger-ui-dist', name), join(viewer, name));
