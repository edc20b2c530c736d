import type { Command } from 'commander';
import { randomUUID } from 'node:crypto';
import type { JsonOption } from './arguments';
import type { Io } from './io';
import { printOne } from './output';
import { sessionCommand, type OperatorSession } from './session';

const run = async ({ io, app, configuration, upToDate }: OperatorSession, options: JsonOption) => {
  const { createDemo, DEMO_NAME } = require('../app/demo') as typeof import('../app/demo');
  const { runningServer } = require('../app/running-server') as typeof import('../app/running-server');
  const { OPERATOR_ID, PORTAL, PUBLIC_URL, PORT } = configuration;
  const tenant_id = randomUUID();
  const { key, facts } = await createDemo(app, tenant_id, OPERATOR_ID);
  await upToDate();
  const running = await runningServer(configuration, await app.log.identity());
  const url = PUBLIC_URL || running || `http://127.0.0.1:${PORT}`;
  const portal = PORTAL ? `${url}/portal` : null;
  printOne(io, { tenant_id, name: DEMO_NAME, facts, key, portal }, options);
};

export const demoCommand = (io: Io): Command =>
  sessionCommand(io, 'demo', run, 'create')
    .description('create a tenant with an Application and a month of facts to look at; its key is shown once')
    .addHelpText(
      'after',
      '\nEach run creates another tenant. To remove it: tenant-ledger tenant delete TENANT_ID',
    );
