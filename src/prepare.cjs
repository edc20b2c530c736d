'use strict';

// Makes a fresh clone ready: checks Node, installs what is missing from the lockfile, builds what has changed.
// Plain JavaScript with old syntax and no dependency, so that it runs before anything is installed and can tell an old
// Node in a clear sentence. Run by itself (`node src/prepare.cjs`) it prepares for the tests.

var OLDEST = [20, 19];

var have = process.versions.node.split('.').map(Number);
if (have[0] < OLDEST[0] || (have[0] === OLDEST[0] && have[1] < OLDEST[1])) {
  console.error(
    'tenant-ledger needs Node ' +
      OLDEST.join('.') +
      ' or newer; this is Node ' +
      process.versions.node +
      '. Install a newer one, for example from nodejs.org.',
  );
  process.exit(1);
}

var childProcess = require('node:child_process');
var fs = require('node:fs');
var path = require('node:path');

var root = path.join(__dirname, '..');
var stampFile = path.join(root, 'dist', '.built-from');

function readJson(file) {
  try {
    return JSON.parse(fs.readFileSync(path.join(root, file), 'utf8'));
  } catch (_) {
    return undefined;
  }
}

// What the lockfile wants and node_modules does not have. Packages for other platforms are optional.
function missingPackages(withTools) {
  var wanted = (readJson('package-lock.json') || { packages: {} }).packages;
  var installed = (readJson('node_modules/.package-lock.json') || { packages: {} }).packages;
  return Object.keys(wanted).filter(function (name) {
    var one = wanted[name];
    if (name === '' || one.optional || one.devOptional || (one.dev && !withTools)) return false;
    return !installed[name] || installed[name].version !== one.version;
  });
}

// A file's size and time tell whether it has changed since the last build; no file is read.
function sourceStamp() {
  var lines = ['src', 'projections', 'test', 'bench'].flatMap(function (folder) {
    var full = path.join(root, folder);
    if (!fs.existsSync(full)) return [];
    return fs
      .readdirSync(full, { recursive: true })
      .filter(function (file) {
        return file.endsWith('.ts');
      })
      .map(function (file) {
        var stat = fs.statSync(path.join(full, file));
        return folder + '/' + file + ' ' + stat.size + ' ' + stat.mtimeMs;
      });
  });
  lines.push('tsconfig.json ' + fs.statSync(path.join(root, 'tsconfig.json')).mtimeMs);
  return lines.toSorted().join('\n');
}

function run(what, command, args) {
  console.error(what);
  var done = childProcess.spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (done.status === 0) return;
  console.error('tenant-ledger: "' + [command].concat(args).join(' ') + '" failed; see the lines above.');
  process.exit(1);
}

function isBuilt(stamp) {
  try {
    return fs.readFileSync(stampFile, 'utf8') === stamp;
  } catch (_) {
    return false;
  }
}

function prepare(options) {
  var stamp = sourceStamp();
  var built = isBuilt(stamp);
  if (missingPackages(options.forTests || !built).length > 0)
    run('Installing what is missing (npm ci) …', 'npm', [
      'ci',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
    ]);
  if (built) return;
  fs.rmSync(path.join(root, 'dist'), { recursive: true, force: true });
  run('Building …', process.execPath, [path.join(root, 'node_modules', 'typescript', 'bin', 'tsc')]);
  fs.writeFileSync(stampFile, stamp);
}

exports.prepare = prepare;

if (require.main === module) prepare({ forTests: true });
