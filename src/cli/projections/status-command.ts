import type { Command } from 'commander';
import { projections } from '../../../projections/projections';
import { pause } from '../../async/clock';
import type { Position } from '../../event-log/event-log';
import { codeOf } from '../../fault';
import { parkedTenants } from '../../projecting/parked-tenants';
import { isDamage } from '../../read-models/damage';
import {
  generationName,
  type GenerationId,
  type GenerationView,
  type StoredGeneration,
} from '../../read-models/read-models';
import { lagBehind, ledgerStatus, runningRebuilds } from '../../app/status';
import type { JsonOption } from '../arguments';
import { sessionCommand, type OperatorSession } from '../operator-session';
import { printJson, printRecord, printTable } from '../output';
import type { Io } from '../io';

/** The rate is measured over this time. */
const SAMPLE_MS = 500;

/** What was built and is not live, never was, and is not damaged: a rebuild would resume it. */
const roleOf = ({ isLive, leftMs, damage }: StoredGeneration): string => {
  if (isLive) return 'live';
  return leftMs === undefined && damage === undefined ? 'built' : 'unused';
};

const parkedIn = async (generation: GenerationView) => {
  let count = 0;
  let oldest: string | undefined;
  for await (const { since } of parkedTenants(generation)) {
    count += 1;
    if (oldest === undefined || since < oldest) oldest = since;
  }
  return { parked: count, oldest_parked_since: oldest ?? null };
};

const positionOf = async (generation: GenerationView): Promise<string | undefined> =>
  (await generation.control()).applied;

/** Undefined: the generation was pruned in the meantime, or is damaged. */
const ifReadable = <T>(result: Promise<T>): Promise<T | undefined> =>
  result.catch((error: unknown) => {
    if (codeOf(error) === 'generation_removed' || isDamage(error)) return undefined;
    throw error;
  });

const generationRows = async ({ app }: OperatorSession) => {
  const { log, readModels } = app.replay;
  const isCurrentVersion = (id: GenerationId): boolean =>
    projections.some(({ name, version }) => name === id.projection && version === id.version);
  const found: {
    readonly stored: StoredGeneration;
    readonly generation: GenerationView;
    before?: Position | undefined;
  }[] = [];
  for (const stored of (await readModels.state()).generations.filter(isCurrentVersion)) {
    const generation = await readModels.peek(stored);
    if (generation !== undefined)
      found.push({ stored, generation, before: await ifReadable(positionOf(generation)) });
  }
  await pause(SAMPLE_MS);
  const head = (await log.head())?.position;
  const rowOf = async ({ stored, generation, before }: (typeof found)[number]) => {
    const position = await positionOf(generation);
    const moved = position === undefined ? 0 : await log.distance(before, position);
    return {
      generation: generationName(stored),
      role: roleOf(stored),
      position: position ?? null,
      ...(await lagBehind(log, head, position)),
      events_per_second: Math.round((1_000 * moved) / SAMPLE_MS),
      ...(await parkedIn(generation)),
    };
  };
  const rows = await Promise.all(found.map((one) => ifReadable(rowOf(one))));
  return rows.filter((row) => row !== undefined);
};

const run = async (session: OperatorSession, options: JsonOption): Promise<void> => {
  const { io, app } = session;
  const status = {
    head: (await app.log.head())?.position ?? null,
    projector: (await app.projecting.holder()) ?? null,
    generations: await generationRows(session),
    rebuilds: (await runningRebuilds(app.replay.readModels)).map(({ projection, holder, step }) => ({
      projection,
      holder,
      ...step,
    })),
    /** Why live generations cannot be read. */
    damages: (await ledgerStatus(app)).projections.flatMap(({ damage }) => damage ?? []),
  };
  const isParked = status.generations.some(({ role, parked }) => role === 'live' && parked > 0);
  if (isParked || status.damages.length > 0) io.exitCode = 1;
  if (options.json === true) return printJson(io, status);
  printRecord(io, { head: status.head, projector: status.projector });
  io.stdout.write('\n');
  printTable(
    io,
    status.generations.map((row) => ({ ...row, lag_seconds: row.lag_seconds.toFixed(1) })),
  );
  for (const damage of status.damages) io.stdout.write(`\n${damage}\n`);
  if (status.rebuilds.length === 0) return;
  io.stdout.write('\nRebuilding:\n');
  printTable(io, status.rebuilds);
};

export const statusCommand = (io: Io): Command =>
  sessionCommand(io, 'status', run).description(
    "show every generation of this program's versions: position, lag, rate, parked tenants, who projects, running rebuilds; exit code 1 if a tenant is parked or a live generation is damaged",
  );
