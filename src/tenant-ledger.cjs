#!/usr/bin/env node
'use strict';

// The command itself. It runs from a fresh clone: what is missing is installed and built first.
require('./prepare.cjs').prepare({ forTests: false });
void require('../dist/src/cli/main.js').main(process.argv);
