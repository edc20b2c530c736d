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
var dist = path.join(root, 'dist');
var STAMP = '.built-from';

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

function remove(folder) {
  fs.rmSync(folder, { recursive: true, force: true });
}

function run(what, command, args, onFailure) {
  console.error(what);
  var done = childProcess.spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (done.status === 0) return;
  if (onFailure) onFailure();
  console.error('tenant-ledger: "' + [command].concat(args).join(' ') + '" failed; see the lines above.');
  process.exit(1);
}

function isBuilt(stamp) {
  try {
    return fs.readFileSync(path.join(dist, STAMP), 'utf8') === stamp;
  } catch (_) {
    return false;
  }
}

// Another process may put its own build there at the same moment: then that one is moved away, and it is tried again.
function putInPlace(fresh, old) {
  for (var left = 10; ; left -= 1) {
    try {
      return fs.renameSync(fresh, dist);
    } catch (error) {
      if (left === 0) throw error;
    }
    try {
      fs.renameSync(dist, old);
      remove(old);
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }
}

// Built beside the last build, which it replaces when it is whole: servers start threads from these files as they run.
function build(stamp) {
  var fresh = path.join(root, '.dist-' + process.pid);
  var tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  var args = [tsc, '--outDir', fresh, '--tsBuildInfoFile', path.join(fresh, '.tsbuildinfo')];
  remove(fresh);
  run('Building …', process.execPath, args, function () {
    remove(fresh);
  });
  fs.writeFileSync(path.join(fresh, STAMP), stamp);
  putInPlace(fresh, fresh + '-old');
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
  if (!built) build(stamp);
}

exports.prepare = prepare;

if (require.main === module) prepare({ forTests: true });
