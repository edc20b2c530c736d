'use strict';

// A lock file that lets one process at a time install and build. Like `prepare.cjs`, runs before anything is installed.

var fs = require('node:fs');

var STALE_MS = 30000;
var POLL_MS = 100;

function remove(file) {
  fs.rmSync(file, { force: true });
}

// EPERM: the process exists, but belongs to another user.
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

// A lock that is not renewed is stale: its holder was killed, and its PID may belong to another program by now.
function holderOf(path) {
  try {
    var pid = Number(fs.readFileSync(path, 'utf8'));
    return isRunning(pid) && Date.now() - fs.statSync(path).mtimeMs < STALE_MS ? pid : undefined;
  } catch (_) {
    return undefined;
  }
}

// Links a complete file, so that the lock never appears without its PID.
function takeLock(path) {
  var candidate = path + '-' + process.pid;
  fs.writeFileSync(candidate, String(process.pid));
  try {
    fs.linkSync(candidate, path);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  } finally {
    remove(candidate);
  }
}

// Another process may have taken the lock in the meantime: then it is put back.
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

// False: this process was suspended for so long that another one has taken the lock.
function isOwn(path) {
  try {
    return Number(fs.readFileSync(path, 'utf8')) === process.pid;
  } catch (_) {
    return false;
  }
}

// Runs the work under the lock. Concurrent installations would break each other.
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
    return pause(POLL_MS).then(attempt);
  }
  return Promise.resolve(attempt()).then(function () {
    var renewing = setInterval(function () {
      if (isOwn(path)) fs.utimesSync(path, new Date(), new Date());
    }, STALE_MS / 10);
    return work().finally(function () {
      clearInterval(renewing);
      if (isOwn(path)) remove(path);
    });
  });
}

exports.locked = locked;
