import { execSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { pause } from '../../src/async/clock';
import type { EventLog, LoggedEvent, NewEvent } from '../../src/event-log/event-log';
import { eventStoreDbEventLog } from '../../src/event-log/eventstoredb/eventstoredb-event-log';
import { streamNames } from '../../src/event-log/streams';
import { codeOf } from '../../src/fault';
import { anEvent } from '../support/events';

/**
 * `npm run campaign -- eventstore [ROUNDS]`: writers and a follower while the server is frozen and killed, round by round.
 * Every acknowledged event must be there exactly once, an unknown outcome is settled by repeating the same append, and
 * the follower must see everything exactly once, in order. Runs against EVENTSTORE_URL with shell commands that act on
 * the server: STORE_FREEZE, STORE_THAW, STORE_KILL, STORE_START, and for a cluster STORE_FREEZE_LEADER (ended by
 * STORE_THAW), STORE_KILL_LEADER (ended by STORE_START) and STORE_RESIGN_LEADER. Faults whose commands are not set are
 * left out.
 */
const WRITERS = 16;
const FAULT_MS = 4_000;
const BUSY_MS = 1_500;

interface Fault {
  readonly name: string;
  readonly begin: () => unknown;
  /** Called after a while. */
  readonly end: () => unknown;
}

const shell = (name: string) => (): void => {
  // The server reads every variable that starts with EVENTSTORE_ as its own, and does not start with ours.
  const { EVENTSTORE_URL: _, ...env } = process.env;
  execSync(process.env[name] ?? '', { stdio: 'ignore', shell: '/bin/sh', env });
};

const knownFaults = (): readonly Fault[] => {
  const fault = (name: string, begin: string, end?: string): readonly Fault[] =>
    [begin, end ?? begin].every((command) => (process.env[command] ?? '') !== '')
      ? [{ name, begin: shell(begin), end: end === undefined ? () => undefined : shell(end) }]
      : [];
  const faults = [
    ...fault('frozen', 'STORE_FREEZE', 'STORE_THAW'),
    ...fault('killed and started again', 'STORE_KILL', 'STORE_START'),
    ...fault('leader frozen', 'STORE_FREEZE_LEADER', 'STORE_THAW'),
    ...fault('leader killed and started again', 'STORE_KILL_LEADER', 'STORE_START'),
    ...fault('leader resigned', 'STORE_RESIGN_LEADER'),
  ];
  if (faults.length === 0)
    throw new Error('Set STORE_FREEZE and STORE_THAW, or other commands that act on the server.');
  return faults;
};

const counts = new Map<string, number>();
const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);

/** Keeps appending. After an unknown outcome it repeats the same append at the same revision until it is settled. */
const writer = async (log: EventLog, stream: string, over: () => boolean): Promise<readonly NewEvent[]> => {
  const acknowledged: NewEvent[] = [];
  let pending: NewEvent | undefined;
  while (!over() || pending !== undefined) {
    const event: NewEvent = pending ?? anEvent({ number: acknowledged.length });
    const at = acknowledged.length - 1;
    try {
      await log.append(stream, [event], at < 0 ? 'no_stream' : at);
      acknowledged.push(event);
      if (pending !== undefined) count('settled later');
      pending = undefined;
      count('acknowledged');
    } catch (error) {
      const code = codeOf(error) ?? String(error);
      count(code);
      if (code === 'outcome_unknown') pending = event;
      if (code === 'stream_changed') throw error;
      await pause(20);
    }
  }
  return acknowledged;
};

const suffer = async (faults: readonly Fault[], log: EventLog, number: number): Promise<void> => {
  const recovered = async (): Promise<void> => {
    const startedAt = performance.now();
    while (
      !(await log.head().then(
        () => true,
        () => false,
      ))
    )
      await pause(20);
    console.log(`  works again after ${Math.round(performance.now() - startedAt)} ms`);
  };
  for (let round = 0; round < number; round += 1)
    for (const { name, begin, end } of faults) {
      await pause(BUSY_MS);
      console.log(`round ${round + 1}: ${name}`);
      await begin();
      await pause(FAULT_MS);
      await end();
      await recovered();
    }
  await pause(BUSY_MS);
};

const campaign = async (url: string, number: number): Promise<void> => {
  const faults = knownFaults();
  const streams = streamNames(`campaign-${randomUUID()}.`);
  const onError = (): void => count('reports that the log is away');
  const log = await eventStoreDbEventLog(url, streams, { waitMs: 30_000, onError });
  const abort = new AbortController();
  const seen: LoggedEvent[] = [];
  const following = (async () => {
    for await (const batch of log.readAll({ follow: true, signal: abort.signal })) seen.push(...batch);
  })();

  let over = false;
  const names = Array.from({ length: WRITERS }, () => streams.tenant(randomUUID()));
  const writing = Promise.all(names.map((name) => writer(log, name, () => over)));
  await suffer(faults, log, number);
  over = true;
  const written = await writing;

  const stored: LoggedEvent[] = [];
  for await (const batch of log.readAll()) stored.push(...batch);
  while (seen.length < stored.length) await pause(20);
  abort.abort();
  await following;
  await log.close();

  const ids = new Map<string, number>();
  for (const { id } of stored) ids.set(id, (ids.get(id) ?? 0) + 1);
  const acknowledged = written.flat();
  const wrong = {
    'acknowledged and lost': acknowledged.filter(({ id }) => !ids.has(id)).length,
    'stored twice': [...ids.values()].filter((times) => times > 1).length,
    'stored and not acknowledged': stored.length - acknowledged.length,
    'follower differs from the log':
      seen.filter(({ id }, i) => id !== stored[i]?.id).length + Math.abs(seen.length - stored.length),
  };
  console.table({ ...Object.fromEntries(counts), ...wrong });
  if (Object.values(wrong).some((many) => many > 0)) process.exitCode = 1;
};

const main = async (): Promise<void> => {
  const url = process.env['EVENTSTORE_URL'] ?? '';
  if (url === '') throw new Error('Set EVENTSTORE_URL to the server that is to be frozen and killed.');
  await campaign(url, Number(process.argv[2] ?? 2));
};

void main();
