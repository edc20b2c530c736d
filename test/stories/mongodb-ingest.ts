import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { App } from '../../src/app/app';
import { monotonicMs, pause } from '../../src/async/clock';
import { manyFacts, textOf } from '../support/facts';
import type { Fault } from '../support/mongodb/set-faults';

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Ingested {
  readonly fault: string;
  readonly 'exit code': number;
  readonly accepted: number;
  readonly 'already there': number;
  readonly refused: number;
  readonly 'in the log when it happened': number;
  readonly 'in the log': number;
  readonly 'in the log once': number;
  readonly 'found when ingested again': number;
  readonly seconds: number;
}

interface Around {
  readonly app: App;
  readonly folder: string;
  readonly run: (...args: readonly string[]) => Promise<Finished>;
}

interface Totals {
  readonly accepted: number;
  readonly already_there: number;
  readonly refused: number;
}

const FACTS = 20_000;

const idsOf = async ({ log, streams }: App, tenantId: string): Promise<readonly string[]> => {
  const ids: string[] = [];
  for await (const batch of log.readStream(streams.activity(tenantId)))
    ids.push(...batch.map(({ id }) => id));
  return ids;
};

const totalsOf = ({ stdout, stderr }: Finished): Totals => {
  if (!stdout.startsWith('{')) throw new Error(`There are no totals: ${stderr}`);
  return JSON.parse(stdout) as Totals;
};

/** Ingests a large file, lets the fault happen halfway, and counts what is in the log. */
export const ingestThrough = async (
  [fault, happen]: Fault,
  tenantId: string,
  { app, folder, run }: Around,
): Promise<Ingested> => {
  console.error(`ingest: ${fault} …`);
  const file = join(folder, `${randomUUID()}.ndjson`);
  writeFileSync(file, textOf(manyFacts([tenantId], FACTS, 1)));
  const beganAt = monotonicMs();
  const running = run('ingest', '--json', file);
  while ((await idsOf(app, tenantId)).length < FACTS / 4) await pause(50);
  const end = await happen();
  const before = (await idsOf(app, tenantId)).length;
  const finished = await running;
  const seconds = Math.round((monotonicMs() - beganAt) / 1_000);
  await end();
  const { accepted, already_there, refused } = totalsOf(finished);
  const ids = await idsOf(app, tenantId);
  const again = totalsOf(await run('ingest', '--json', file));
  return {
    fault,
    'exit code': finished.code,
    accepted,
    'already there': already_there,
    refused,
    'in the log when it happened': before,
    'in the log': ids.length,
    'in the log once': new Set(ids).size,
    'found when ingested again': again.already_there,
    seconds,
  };
};

export const isWhole = (one: Ingested): boolean =>
  one['exit code'] === 0 &&
  one['in the log when it happened'] < FACTS &&
  [one.accepted, one['in the log'], one['in the log once'], one['found when ingested again']].every(
    (count) => count === FACTS,
  );
