'use strict';

// Prepares a fresh clone: checks the version of Node, installs missing packages, and builds if a source has changed.
// Old JavaScript syntax without dependencies, so that it runs before anything is installed, and on an old Node, which it
// reports clearly. Run directly (`node src/prepare.cjs`), it prepares for the tests.

var MIN_NODE = [20, 19];

var current = process.versions.node.split('.').map(Number);
if (current[0] < MIN_NODE[0] || (current[0] === MIN_NODE[0] && current[1] < MIN_NODE[1])) {
  console.error(
    'tenant-ledger needs Node ' +
      MIN_NODE.join('.') +
      ' or newer; this is Node ' +
      process.versions.node +
      '. Install a newer one, for example from nodejs.org.',
  );
  process.exit(1);
}

var childProcess = require('node:child_process');
var fs = require('node:fs');
var os = require('node:os');
var path = require('node:path');
var locked = require('./prepare-lock.cjs').locked;

var root = path.join(__dirname, '..');
var dist = path.join(root, 'dist');
var STAMP = '.built-from';

var SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
var KILL_AFTER_MS = 3000;

function readJson(file) {
  try {
    return JSON.parse(fs.readFileSync(path.join(root, file), 'utf8'));
  } catch (_) {
    return undefined;
  }
}

// The packages in the lockfile but not in node_modules, except optional ones, which may be for other platforms.
function missingPackages(withTools) {
  var wanted = (readJson('package-lock.json') || { packages: {} }).packages;
  var installed = (readJson('node_modules/.package-lock.json') || { packages: {} }).packages;
  return Object.keys(wanted).filter(function (name) {
    var entry = wanted[name];
    if (name === '' || entry.optional || entry.devOptional || (entry.dev && !withTools)) return false;
    return !installed[name] || installed[name].version !== entry.version;
  });
}

// To run the program, neither the tests nor their dependencies are needed.
var PROGRAM = { project: 'tsconfig.build.json', folders: ['src', 'projections'] };
var EVERYTHING = { project: 'tsconfig.json', folders: ['src', 'projections', 'test', 'bench'] };

// Detects changes since the last build by size and modification time, without reading the files.
function sourceStamp(part) {
  var lines = part.folders.flatMap(function (folder) {
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
  return lines.toSorted().join('\n') + '\n';
}

function remove(folder) {
  fs.rmSync(folder, { recursive: true, force: true });
}

// Signals the child and all its descendants: it is the leader of its own process group.
function signalGroup(child, signal) {
  try {
    if (process.platform === 'win32') child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

// Forwards signals to the child, which would otherwise survive this process. The next run redoes an unfinished step.
function run(what, command, args, onFailure) {
  console.error(what);
  var child;
  var interrupted;
  function onSignal(signal) {
    if (interrupted === undefined) setTimeout(signalGroup, KILL_AFTER_MS, child, 'SIGKILL').unref();
    interrupted = signal;
    signalGroup(child, signal);
  }
  // Before the child starts, so that a signal in between does not end this process alone.
  SIGNALS.forEach(function (signal) {
    process.on(signal, onSignal);
  });
  child = childProcess.spawn(command, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
    detached: process.platform !== 'win32',
  });
  return new Promise(function (resolve) {
    child.on('error', function (error) {
      console.error('tenant-ledger: ' + error.message);
      resolve(1);
    });
    child.on('close', resolve);
  }).then(function (status) {
    SIGNALS.forEach(function (signal) {
      process.removeListener(signal, onSignal);
    });
    if (status === 0 && interrupted === undefined) return;
    if (onFailure) onFailure();
    if (interrupted !== undefined) {
      console.error('tenant-ledger: interrupted; the next start begins this step again.');
      throw new Failed(128 + os.constants.signals[interrupted]);
    }
    console.error('tenant-ledger: "' + [command].concat(args).join(' ') + '" failed; see the lines above.');
    throw new Failed(1);
  });
}

// A failure that was already reported: carries only the exit code.
function Failed(code) {
  this.exitCode = code;
}

// One stamp per part, because a build of everything includes the program and has both stamps.
function stampFile(folder, part) {
  return path.join(folder, STAMP + '-' + part.project);
}

function isBuilt(part) {
  try {
    return fs.readFileSync(stampFile(dist, part), 'utf8') === sourceStamp(part);
  } catch (_) {
    return false;
  }
}

function replaceDist(fresh, old) {
  if (fs.existsSync(dist)) fs.renameSync(dist, old);
  fs.renameSync(fresh, dist);
  remove(old);
}

// Builds into a new folder, which replaces `dist` once complete: running servers start worker threads from these files.
function build(part) {
  var stamps = (part === EVERYTHING ? [PROGRAM, EVERYTHING] : [PROGRAM]).map(function (built) {
    return [built, sourceStamp(built)];
  });
  var fresh = path.join(root, '.dist-' + process.pid);
  var tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  var info = path.join(fresh, '.tsbuildinfo');
  var args = [tsc, '--project', part.project, '--outDir', fresh, '--tsBuildInfoFile', info];
  remove(fresh);
  return run('Building …', process.execPath, args, function () {
    remove(fresh);
  }).then(function () {
    stamps.forEach(function (stamp) {
      fs.writeFileSync(stampFile(fresh, stamp[0]), stamp[1]);
    });
    replaceDist(fresh, fresh + '-old');
  });
}

var QUIET_FLAGS = ['--no-audit', '--no-fund', '--loglevel=error'];

// Most packages are development tools, so they are installed only for the tests. `--include=dev` overrides
// NODE_ENV=production.
function install(options) {
  var tools = options.forTests ? '--include=dev' : '--omit=dev';
  return run('Installing what is missing (npm ci) …', 'npm', ['ci', tools].concat(QUIET_FLAGS));
}

function missing(options) {
  return {
    build: !isBuilt(options.forTests ? EVERYTHING : PROGRAM),
    install: missingPackages(options.forTests).length > 0,
  };
}

// Checks again under the lock, because another process may have finished in the meantime.
function makeReady(options) {
  var todo = missing(options);
  return Promise.resolve(todo.install ? install(options) : undefined).then(function () {
    if (todo.build) return build(options.forTests ? EVERYTHING : PROGRAM);
  });
}

function prepare(options) {
  var todo = missing(options);
  if (!todo.install && !todo.build) return Promise.resolve();
  return locked(path.join(root, '.preparing'), function () {
    return makeReady(options);
  }).catch(function (error) {
    if (!(error instanceof Failed)) throw error;
    process.exit(error.exitCode);
  });
}

exports.prepare = prepare;

if (require.main === module) void prepare({ forTests: true });
