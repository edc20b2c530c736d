#!/usr/bin/env node
'use strict';

// The executable. Works in a fresh clone: installs and builds what is missing first.
void require('./prepare.cjs')
  .prepare({ forTests: false })
  .then(function () {
    return require('../dist/src/cli/main.js').main(process.argv, process);
  });
