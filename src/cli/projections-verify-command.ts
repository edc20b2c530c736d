import type { Command } from 'commander';
import type { Difference } from '../projecting/compare';
import type { Verified } from '../projecting/verify';
import { uuid, type JsonOption } from './arguments';
import { sessionCommand, type OperatorSession } from './session';
import { notice, printJson, printOne } from './output';
import { withProgress } from './progress';
import type { Io } from './io';

interface Options extends JsonOption {
  readonly tenant?: string;
}

/** For a terminal: which document differs, and how. */
export const differenceText = ({ kind, tenantId, collection, key, live, replayed }: Difference): string => {
  const which = JSON.stringify({ kind, tenant_id: tenantId, collection, key });
  return `${which}\n  live:     ${JSON.stringify(live)}\n  replayed: ${JSON.stringify(replayed)}`;
};

/** Beyond this, differences are only counted in the JSON report. */
const MAX_SHOWN = 10_000;

/** With a parked tenant, the read models are incomplete. */
const isSound = ({ differences, parked, gaps }: Verified): boolean =>
  differences === 0 && parked.length === 0 && gaps.length === 0;

/** Collects differences for the JSON report, or prints each as it is found. */
const differencesFor = (io: Io, { json }: Options) => {
  const all: unknown[] = [];
  const onDifference = (difference: Difference): void => {
    const { tenantId, collection, key, kind, live, replayed } = difference;
    const summary = { kind, tenant_id: tenantId, collection, key };
    if (all.length < MAX_SHOWN) all.push({ ...summary, live: live ?? null, replayed: replayed ?? null });
    if (json !== true) notice(io, differenceText(difference));
  };
  return { all, onDifference };
};

const viewOf = ({ gaps, ...report }: Verified) => ({
  ...report,
  gaps: gaps.map(({ tenant_id, event_id, reason }) => ({ tenant_id, event_id, reason })),
});

const print = (io: Io, report: Verified, options: Options): void => {
  for (const { tenant_id, event_id, reason } of report.gaps)
    notice(io, `Tenant ${tenant_id}, event ${event_id}. ${reason}`);
  if (report.parked.length > 0)
    notice(io, 'Tenants are parked: tenant-ledger status says at which events, and why.');
  printOne(io, { ...report, gaps: report.gaps.map(({ tenant_id }) => tenant_id) }, options);
};

const run = async ({ io, app, upToDate }: OperatorSession, options: Options): Promise<void> => {
  const { openScratch } = require('../app/adapters') as typeof import('../app/adapters');
  const { verify } = require('../projecting/verify') as typeof import('../projecting/verify');
  await upToDate();
  const { all: differences, onDifference } = differencesFor(io, options);
  const scratch = openScratch();
  try {
    const report = await withProgress(io, 'Verifying', (line) =>
      verify(app.replay, scratch.readModels, {
        tenantId: options.tenant,
        onDifference,
        onProgress: (events, documents) =>
          line.show(documents === 0 ? `${events} events replayed` : `${documents} documents compared`),
      }),
    );
    if (!isSound(report)) io.exitCode = 1;
    if (options.json === true) printJson(io, { ...viewOf(report), documents_that_differ: differences });
    else print(io, report, options);
  } finally {
    await scratch.remove();
  }
};

export const verifyCommand = (io: Io): Command =>
  sessionCommand(io, 'verify', run)
    .description(
      'replay into a scratch store and compare with the live read models; exit code 1 if they differ, events are missing or a tenant is parked',
    )
    .option('--tenant <uuid>', 'only this tenant', uuid);
