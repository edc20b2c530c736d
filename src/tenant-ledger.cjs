#!/usr/bin/env node
'use strict';

// The executable. Old JavaScript syntax, so that an old Node gets as far as the sentence about its version.

var fs = require('fs');
var path = require('path');

var program = path.join(__dirname, '..', 'dist', 'src', 'cli', 'main.js');

function refuse(sentence) {
  console.error('tenant-ledger: ' + sentence);
  process.exit(1);
}

var version = process.versions.node.split('.').map(Number);
if (version[0] < 20 || (version[0] === 20 && version[1] < 19))
  refuse('this needs Node 20.19 or newer; this is Node ' + process.versions.node + '.');

try {
  fs.accessSync(program, fs.constants.R_OK);
} catch (error) {
  refuse(
    error.code === 'ENOENT'
      ? 'the program is not built. In a clone, run: npm ci && npm run build'
      : 'this user may not read the program (' + error.message + ').',
  );
}

void require(program).main(process.argv, process);
