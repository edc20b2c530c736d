'use strict';

// Makes a fresh clone ready: checks Node, installs what is missing from the lockfile, builds what has changed.
// Plain JavaScript with old syntax and no dependency, so that it runs before anything is installed and can report an old
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

// Whoever only runs the program builds neither the tests nor what they need.
var PROGRAM = { project: 'tsconfig.build.json', folders: ['src', 'projections'] };
var EVERYTHING = { project: 'tsconfig.json', folders: ['src', 'projections', 'test', 'bench'] };

// A file's size and time show whether it has changed since the last build; no file is read.
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

// The child and everything that it has started: it leads a group of its own.
function endGroup(child, signal) {
  try {
    if (process.platform === 'win32') child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

// A signal ends the child, too, which would go on by itself otherwise; what it leaves behind is made again next time.
function run(what, command, args, onFailure) {
  console.error(what);
  var child;
  var interrupted;
  function onSignal(signal) {
    if (interrupted === undefined) setTimeout(endGroup, KILL_AFTER_MS, child, 'SIGKILL').unref();
    interrupted = signal;
    endGroup(child, signal);
  }
  // First: a signal that comes as the child begins must not end this process alone.
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

// Has been said already; only the exit code is left.
function Failed(code) {
  this.exitCode = code;
}

// A build of everything holds the program, too: its stamps lie side by side.
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

function putInPlace(fresh, old) {
  if (fs.existsSync(dist)) fs.renameSync(dist, old);
  fs.renameSync(fresh, dist);
  remove(old);
}

// Built beside the last build, which it replaces when it is whole: servers start threads from these files as they run.
function build(part) {
  var stamps = (part === EVERYTHING ? [PROGRAM, EVERYTHING] : [PROGRAM]).map(function (one) {
    return [one, sourceStamp(one)];
  });
  var fresh = path.join(root, '.dist-' + process.pid);
  var tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  var info = path.join(fresh, '.tsbuildinfo');
  var args = [tsc, '--project', part.project, '--outDir', fresh, '--tsBuildInfoFile', info];
  remove(fresh);
  return run('Building …', process.execPath, args, function () {
    remove(fresh);
  }).then(function () {
    stamps.forEach(function (one) {
      fs.writeFileSync(stampFile(fresh, one[0]), one[1]);
    });
    putInPlace(fresh, fresh + '-old');
  });
}

var QUIETLY = ['--no-audit', '--no-fund', '--loglevel=error'];

// The tools of the tests are most of all packages. NODE_ENV=production would leave them out even where they are wanted.
function install(options) {
  var tools = options.forTests ? '--include=dev' : '--omit=dev';
  return run('Installing what is missing (npm ci) …', 'npm', ['ci', tools].concat(QUIETLY));
}

// What has to be done: an installation, a build, both or nothing.
function missing(options) {
  return {
    build: !isBuilt(options.forTests ? EVERYTHING : PROGRAM),
    install: missingPackages(options.forTests).length > 0,
  };
}

// Another process may have done it meanwhile.
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
