import { Command } from 'commander';
import { projections } from '../../../projections/projections';
import { verifyInWorkers } from '../../app/replay-workers';
import type { Difference } from '../../projecting/compare';
import type { Verified } from '../../projecting/verify';
import { jsonOption, uuid, type JsonOption } from '../arguments';
import { inSession, warn } from '../operator-session';
import { notice, printJson, printMany } from '../output';
import { withProgress } from '../progress';
import type { Io } from '../io';

interface Options extends JsonOption {
  readonly tenant?: string;
}

/** For a terminal: which document differs, and how. */
export const differenceText = (
  projection: string,
  { kind, tenantId, collection, key, live, replayed }: Difference,
): string => {
  const which = JSON.stringify({ projection, kind, tenant_id: tenantId, collection, key });
  return `${which}\n  live:     ${JSON.stringify(live)}\n  replayed: ${JSON.stringify(replayed)}`;
};

/** Beyond this, differences are only counted in the JSON report. */
const MAX_SHOWN = 10_000;

/** With a parked tenant, the read model is incomplete. */
const isSound = ({ differences, parked, gaps }: Verified): boolean =>
  differences === 0 && parked.length === 0 && gaps.length === 0;

/** Collects differences for the JSON report, or prints each as it is found. */
const differencesFor = (io: Io, { json }: Options) => {
  const all: unknown[] = [];
  const onDifference = (projection: string, difference: Difference): void => {
    const { tenantId, collection, key, kind, live, replayed } = difference;
    const summary = { projection, kind, tenant_id: tenantId, collection, key };
    if (all.length < MAX_SHOWN) all.push({ ...summary, live: live ?? null, replayed: replayed ?? null });
    if (json !== true) notice(io, differenceText(projection, difference));
  };
  return { all, onDifference };
};

const print = (io: Io, reports: readonly Verified[], options: Options): void => {
  for (const { projection, gaps } of reports)
    for (const { tenant_id, event_id, reason } of gaps)
      notice(io, `${projection}: tenant ${tenant_id}, event ${event_id}. ${reason}`);
  if (reports.some(({ parked }) => parked.length > 0))
    notice(io, 'Tenants are parked: tenant-ledger status says at which events, and why.');
  printMany(
    io,
    reports.map((report) => ({ ...report, gaps: report.gaps.map(({ tenant_id }) => tenant_id) })),
    options,
  );
};

const verify =
  (io: Io) =>
  async (options: Options): Promise<void> => {
    const configuration = await inSession(io, async (session) => {
      await session.upToDate();
      return session.configuration;
    });
    const { all: differences, onDifference } = differencesFor(io, options);
    const reports = await withProgress(io, 'Verifying', ({ show: onProgress }) =>
      verifyInWorkers(configuration, projections, options.tenant, {
        onError: warn(io),
        onProgress,
        onDifference,
      }),
    );
    if (!reports.every(isSound)) io.exitCode = 1;
    if (options.json === true) printJson(io, { projections: reports, differences });
    else print(io, reports, options);
  };

export const verifyCommand = (io: Io): Command =>
  new Command('verify')
    .description(
      'replay into a scratch store and compare with the live read models; exit code 1 if they differ, events are missing or a tenant is parked',
    )
    .option('--tenant <uuid>', 'only this tenant', uuid)
    .addOption(jsonOption())
    .action(verify(io));
