'use strict';

// Completes what the compiler wrote to `dist`: removes outputs whose source is gone, and copies what browsers load.

const {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '..');
const dist = join(root, 'dist');
const portal = join(dist, 'portal');
const vendor = join(portal, 'vendor');
const viewer = join(dist, 'swagger-ui');

/** The libraries of the portal, by the names that its import map gives them. */
const LIBRARIES = {
  'preact.js': 'preact/dist/preact.mjs',
  'hooks.js': 'preact/hooks/dist/hooks.mjs',
  'jsx-runtime.js': 'preact/jsx-runtime/dist/jsxRuntime.mjs',
  'signals.js': '@preact/signals/dist/signals.mjs',
  'signals-core.js': '@preact/signals-core/dist/signals-core.mjs',
};

/** The viewer of the API reference, and what its license wants to be given along. */
const VIEWER = [
  'swagger-ui.css',
  'swagger-ui-bundle.js',
  'swagger-ui-bundle.js.LICENSE.txt',
  'LICENSE',
  'NOTICE',
];

for (const file of readdirSync(dist, { recursive: true })) {
  const source = /^(?!portal\/vendor|swagger-ui)(.+)\.js(?:\.map)?$/.exec(file)?.[1];
  if (source !== undefined && !['.ts', '.tsx'].some((ending) => existsSync(join(root, source + ending))))
    rmSync(join(dist, file));
}

mkdirSync(vendor, { recursive: true });
for (const file of readdirSync(join(root, 'portal')))
  if (/\.(css|svg)$/.test(file)) copyFileSync(join(root, 'portal', file), join(portal, file));
for (const [name, file] of Object.entries(LIBRARIES)) {
  const text = readFileSync(join(root, 'node_modules', file), 'utf8');
  writeFileSync(join(vendor, name), text.replace(/\n?\/\/# sourceMappingURL=.*\n?$/, '\n'));
}

mkdirSync(viewer, { recursive: true });
for (const name of VIEWER) copyFileSync(join(root, 'node_modules/swagger-ui-dist', name), join(viewer, name));
