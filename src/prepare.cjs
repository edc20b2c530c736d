'use strict';

// Prepares a fresh clone: checks the version of Node, installs missing packages, and builds if a source has changed.
// Writes nothing if everything is built, or in an installed package, which has no sources. Old JavaScript syntax
// without dependencies, so that it runs before anything is installed, and on an old Node, which it reports clearly. Run
// directly, it prepares for the tests (`node src/prepare.cjs`) or builds the program (`node src/prepare.cjs build`).

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
var crypto = require('node:crypto');
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
var PROGRAM = { project: 'tsconfig.build.json', folders: ['src', 'projections', 'portal'] };
var EVERYTHING = { project: 'tsconfig.json', folders: ['src', 'projections', 'portal', 'test', 'bench'] };

function sourcesOf(part) {
  var files = part.folders.flatMap(function (folder) {
    var full = path.join(root, folder);
    if (!fs.existsSync(full)) return [];
    return fs
      .readdirSync(full, { recursive: true })
      .filter(function (file) {
        return /\.(tsx?|css|svg)$/.test(file);
      })
      .map(function (file) {
        return path.join(folder, file);
      });
  });
  return files.concat('tsconfig.json', 'tsconfig.build.json', 'portal/tsconfig.json').toSorted();
}

// The libraries that run in the browser, by the names that the portal's import map gives them.
var LIBRARIES = {
  'preact.js': 'preact/dist/preact.mjs',
  'hooks.js': 'preact/hooks/dist/hooks.mjs',
  'jsx-runtime.js': 'preact/jsx-runtime/dist/jsxRuntime.mjs',
  'signals.js': '@preact/signals/dist/signals.mjs',
  'signals-core.js': '@preact/signals-core/dist/signals-core.mjs',
};

// Copied by the build, so another version of one is a change like that of a source.
function libraryVersions() {
  var wanted = (readJson('package-lock.json') || { packages: {} }).packages;
  return Object.values(LIBRARIES)
    .map(function (file) {
      var name = /^(@[^/]+\/)?[^/]+/.exec(file)[0];
      return name + ' ' + (wanted['node_modules/' + name] || {}).version;
    })
    .join('\n');
}

// Detects changes since the last build without reading the files.
function timesOf(sources) {
  return sources
    .map(function (file) {
      var stat = fs.statSync(path.join(root, file));
      return file + ' ' + stat.size + ' ' + stat.mtimeMs;
    })
    .concat(libraryVersions())
    .join('\n');
}

// A copy of a built tree has other times but the same contents, and counts as built.
function contentOf(sources) {
  var hash = crypto.createHash('sha256').update(libraryVersions());
  sources.forEach(function (file) {
    hash.update(file + '\0').update(fs.readFileSync(path.join(root, file)));
  });
  return hash.digest('hex');
}

function stampOf(part) {
  var sources = sourcesOf(part);
  return timesOf(sources) + '\n\n' + contentOf(sources);
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

var child;
var interrupted;

// Forwards the signal to the child, which would otherwise survive this process. The next run redoes an unfinished step.
function onSignal(signal) {
  if (child !== undefined) {
    if (interrupted === undefined) setTimeout(signalGroup, KILL_AFTER_MS, child, 'SIGKILL').unref();
    signalGroup(child, signal);
  }
  interrupted = signal;
}

function mustNotBeInterrupted() {
  if (interrupted === undefined) return;
  console.error('tenant-ledger: interrupted; the next start begins this step again.');
  throw new Failed(128 + os.constants.signals[interrupted]);
}

function run(what, command, args) {
  console.error(what);
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
    child = undefined;
    mustNotBeInterrupted();
    if (status === 0) return;
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
    var stamp = fs.readFileSync(stampFile(dist, part), 'utf8').split('\n\n');
    var sources = sourcesOf(part);
    return stamp[0] === timesOf(sources) || stamp[1] === contentOf(sources);
  } catch (_) {
    return false;
  }
}

function replaceDist(fresh, old) {
  if (fs.existsSync(dist)) fs.renameSync(dist, old);
  fs.renameSync(fresh, dist);
  remove(old);
}

// Also those of a process that was killed.
function removeUnfinished() {
  fs.readdirSync(root).forEach(function (name) {
    if (name.startsWith('.dist-')) remove(path.join(root, name));
  });
}

// What needs no compiler: styles, pictures and libraries.
function copyPortalFiles(folder) {
  fs.readdirSync(path.join(root, 'portal')).forEach(function (file) {
    if (/\.(css|svg)$/.test(file)) fs.copyFileSync(path.join(root, 'portal', file), path.join(folder, file));
  });
  fs.mkdirSync(path.join(folder, 'vendor'), { recursive: true });
  Object.keys(LIBRARIES).forEach(function (name) {
    var text = fs.readFileSync(path.join(root, 'node_modules', LIBRARIES[name]), 'utf8');
    fs.writeFileSync(
      path.join(folder, 'vendor', name),
      text.replace(/\n?\/\/# sourceMappingURL=.*\n?$/, '\n'),
    );
  });
}

// Builds into a new folder, which replaces `dist` once complete: running servers start worker threads from these files.
function build(part) {
  var stamps = (part === EVERYTHING ? [PROGRAM, EVERYTHING] : [PROGRAM]).map(function (built) {
    return [built, stampOf(built)];
  });
  var fresh = path.join(root, '.dist-' + process.pid);
  var tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  var info = path.join(fresh, '.tsbuildinfo');
  var args = [tsc, '--project', part.project, '--outDir', fresh, '--tsBuildInfoFile', info];
  removeUnfinished();
  return run('Building …', process.execPath, args)
    .then(function () {
      var forBrowsers = ['--project', 'portal/tsconfig.json', '--outDir', path.join(fresh, 'portal')];
      return run('Building the portal …', process.execPath, [tsc].concat(forBrowsers));
    })
    .then(function () {
      copyPortalFiles(path.join(fresh, 'portal'));
      stamps.forEach(function (stamp) {
        fs.writeFileSync(stampFile(fresh, stamp[0]), stamp[1]);
      });
      replaceDist(fresh, fresh + '-old');
    })
    .finally(removeUnfinished);
}

// `--include=dev` overrides NODE_ENV=production: TypeScript is a development tool, like the packages for the tests.
function install() {
  var quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  return run('Installing what is missing (npm ci) …', 'npm', ['ci', '--include=dev'].concat(quiet));
}

// What is built needs no development tools.
function missing(options) {
  var toBuild = !isBuilt(options.forTests ? EVERYTHING : PROGRAM);
  return { build: toBuild, install: missingPackages(toBuild || options.forTests).length > 0 };
}

// Checks again under the lock, because another process may have finished in the meantime.
function makeReady(options) {
  var todo = missing(options);
  SIGNALS.forEach(function (signal) {
    process.on(signal, onSignal);
  });
  return Promise.resolve(todo.install ? install() : undefined)
    .then(function () {
      if (todo.build) return build(options.forTests ? EVERYTHING : PROGRAM);
    })
    .then(mustNotBeInterrupted)
    .finally(function () {
      SIGNALS.forEach(function (signal) {
        process.removeListener(signal, onSignal);
      });
    });
}

function mustBeWritable(todo) {
  try {
    fs.accessSync(root, fs.constants.W_OK);
  } catch (_) {
    console.error(
      'tenant-ledger: ' +
        (todo.build ? 'the program in ' + root + ' is not built' : 'packages are missing in ' + root) +
        ', and this user may not write there. As the owner of the folder, run: npm run build',
    );
    process.exit(1);
  }
}

function prepare(options) {
  if (!fs.existsSync(path.join(root, 'tsconfig.json'))) return Promise.resolve();
  var todo = missing(options);
  if (!todo.install && !todo.build) return Promise.resolve();
  mustBeWritable(todo);
  return locked(path.join(root, '.preparing'), function () {
    return makeReady(options);
  }).catch(function (error) {
    if (!(error instanceof Failed)) throw error;
    process.exit(error.exitCode);
  });
}

exports.prepare = prepare;

if (require.main === module) void prepare({ forTests: process.argv[2] !== 'build' });
