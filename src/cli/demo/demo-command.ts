import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { DAY_MS } from '../../async/clock';
import type { Configuration } from '../../configuration';
import { addKey, revokeKey } from '../../domain/application-keys';
import { createApplication, deleteApplication, updateApplication } from '../../domain/applications';
import { permissionsOf, type ApplicationType } from '../../domain/permissions';
import { createTenant, updateTenant, type Decide } from '../../domain/tenant';
import { newKey } from '../../ledger/new-key';
import type { JsonOption } from '../arguments';
import { ingestIn } from '../ingest-command';
import type { Io } from '../io';
import { sessionCommand, type OperatorSession } from '../operator-session';
import { notice, printOne } from '../output';
import { demoMonth, randomFrom, type DemoActors } from './demo-month';

const NAME = 'Acme Payments (demo)';
const INCLUDED_TOKENS = 1_000;
const SEED = 1;
const WAIT_SECONDS = 60;

const RECORDED_NOW =
  'The facts happened in the last 30 days, as the usage report counts them. The log has recorded them now, and shows that: it takes no times from the past.';

interface Created {
  readonly id: string;
  readonly key: string;
  readonly keyId: string;
}

/** What an operator does to set up a tenant, as commands would, one after the other. */
const setUp = async ({ write, configuration: { OPERATOR_ID } }: OperatorSession, tenantId: string) => {
  const decide = (decision: Decide) => write(tenantId, decision);
  const create = async (
    name: string,
    type: ApplicationType,
    permissions: readonly string[],
    more: { readonly expiresAt?: string } = {},
  ): Promise<Created> => {
    const id = randomUUID();
    const { key, input } = newKey(tenantId, more);
    await decide(createApplication({ applicationId: id, name, type, permissions, key: input }));
    return { id, key, keyId: input.keyId };
  };
  await decide(
    createTenant({ name: NAME, ownerId: OPERATOR_ID, includedMonthlyActiveTokens: INCLUDED_TOKENS }),
  );
  const all = permissionsOf('management').map(({ type }) => type);
  const console = await create('Console', 'management', all);
  const checkout = await create('Checkout', 'public', ['token:create']);
  const billing = await create('Billing', 'private', ['token:read', 'token:use']);
  const expiresAt = new Date(Date.now() + 30 * DAY_MS).toISOString();
  const reports = await create('Nightly reports', 'private', ['token:read'], { expiresAt });
  const importer = await create('Importer 2024', 'private', ['token:create', 'token:update']);
  await decide(updateTenant({ name: NAME, settings: { deduplicateTokens: true } }));
  await decide(updateApplication(billing.id, { permissions: ['token:read', 'token:use', 'token:update'] }));
  await decide(addKey(billing.id, newKey(tenantId, { name: 'second region' }).input));
  await decide(revokeKey(importer.keyId));
  await decide(deleteApplication(importer.id));
  const actors: DemoActors = { creating: checkout.id, using: billing.id, reading: reports.id };
  return { console, actors };
};

const portalOf = ({ PORTAL, PUBLIC_URL, PORT }: Configuration): string | null =>
  PORTAL ? `${PUBLIC_URL === '' ? `http://127.0.0.1:${PORT}` : PUBLIC_URL}/portal` : null;

const run = async (session: OperatorSession, options: JsonOption): Promise<void> => {
  const { io, configuration } = session;
  const tenant_id = randomUUID();
  const { console, actors } = await setUp(session, tenant_id);
  const lines = demoMonth(tenant_id, actors, Date.now(), randomFrom(SEED));
  const input = (async function* () {
    yield Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  })();
  const onRefused = (line: number, reason: string): void => notice(io, `line ${line}: ${reason}`);
  const { accepted, failure } = await ingestIn(session, input, { dryRun: false, onRefused }, WAIT_SECONDS);
  notice(io, RECORDED_NOW);
  printOne(
    io,
    { tenant_id, name: NAME, facts: accepted, key: console.key, portal: portalOf(configuration) },
    options,
  );
  if (failure !== undefined) throw failure;
};

export const demoCommand = (io: Io): Command =>
  sessionCommand(io, 'demo', run, { createsData: true })
    .description(
      'create a tenant with Applications, keys and a month of facts to look at; its key is shown once',
    )
    .addHelpText(
      'after',
      '\nEach run creates another tenant. To remove it: tenant-ledger tenant delete TENANT_ID',
    );
