'use strict';

// One process at a time installs and builds. As `prepare.cjs`, it runs before anything is installed.

var fs = require('node:fs');

var STALE_MS = 30000;
var LOOK_AGAIN_MS = 100;

function remove(file) {
  fs.rmSync(file, { force: true });
}

// A process that we may not signal runs, too.
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

// A lock that is not renewed is nobody's: its process was killed, or its number belongs to another program by now.
function holderOf(path) {
  try {
    var pid = Number(fs.readFileSync(path, 'utf8'));
    return isRunning(pid) && Date.now() - fs.statSync(path).mtimeMs < STALE_MS ? pid : undefined;
  } catch (_) {
    return undefined;
  }
}

// It appears with its content, in one step.
function takeLock(path) {
  var mine = path + '-' + process.pid;
  fs.writeFileSync(mine, String(process.pid));
  try {
    fs.linkSync(mine, path);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  } finally {
    remove(mine);
  }
}

// Another process may have replaced it by its own at this moment: then that is put back.
function dropStaleLock(path) {
  var dropped = path + '-' + process.pid;
  try {
    fs.renameSync(path, dropped);
    if (holderOf(dropped) !== undefined) fs.linkSync(dropped, path);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
  } finally {
    remove(dropped);
  }
}

function pause(ms) {
  return new Promise(function (resolve) {
    setTimeout(resolve, ms);
  });
}

// One process prepares, others wait for it: two installations at once would break each other.
function locked(path, work) {
  var reported = false;
  function attempt() {
    if (takeLock(path)) return;
    var holder = holderOf(path);
    if (holder === undefined) dropStaleLock(path);
    else if (!reported) {
      reported = true;
      console.error('Process ' + holder + ' is installing or building here already; waiting for it …');
    }
    return pause(LOOK_AGAIN_MS).then(attempt);
  }
  return Promise.resolve(attempt()).then(function () {
    var renewing = setInterval(function () {
      fs.utimesSync(path, new Date(), new Date());
    }, STALE_MS / 10);
    return work().finally(function () {
      clearInterval(renewing);
      remove(path);
    });
  });
}

exports.locked = locked;
