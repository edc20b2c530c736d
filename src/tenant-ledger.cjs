#!/usr/bin/env node
'use strict';

// The command itself. It runs from a fresh clone: what is missing is installed and built first.
void require('./prepare.cjs')
  .prepare({ forTests: false })
  .then(function () {
    return require('../dist/src/cli/main.js').main(process.argv);
  });
