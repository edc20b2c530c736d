import { Command } from 'commander';
import { randomUUID } from 'node:crypto';
import type { App, AppOptions } from '../app/app';
import { operatorActor, operatorRequest } from '../app/operator';
import type { WorkerReport, WorkerThread } from '../app/worker-thread';
import { monotonicMs } from '../async/clock';
import { errorOf } from '../async/thread';
import { readConfiguration, settings, type Configuration } from '../configuration';
import type { DecideServices, Services } from '../domain/services';
import type { Decide, Tenant } from '../domain/tenant';
import type { Position } from '../event-log/event-log';
import { streamNames, type LedgerLog } from '../event-log/streams';
import { messageOf } from '../fault';
import { TIMES } from '../times';
import { option } from './arguments';
import type { Io } from './io';
import { ignoreCtrlZ, notice } from './output';
import { withProgress } from './progress';

const timesOf = ({ times = TIMES }: Io) => times;

export const BEHIND = 'The read models do not show it yet; the service shows it when it has caught up.';

/** Prints a report of the app: a warning, or without an error a recovery. */
const warn =
  (io: Io) =>
  (what: string, error?: unknown): void =>
    notice(io, error === undefined || messageOf(error) === what ? what : `${what} ${messageOf(error)}`);

const howFar = async ({ readModels }: App, head: Position): Promise<string> => {
  const live = await readModels.live();
  if (live === undefined) return 'This version of the program has no read models yet.';
  return `The log is not yet followed to its end: up to position ${live.control.to?.position ?? 0} of ${head}.`;
};

/** Asks operators for an id of their own, where somebody reads it. */
const askForOperator = (io: Io, { OPERATOR_ID }: Configuration): void => {
  if (OPERATOR_ID !== settings.OPERATOR_ID.fallback || io.stderr.isTTY !== true) return;
  notice(
    io,
    `The audit log names every operator user ${OPERATOR_ID}. Take an id of your own, once: export OPERATOR_ID=${randomUUID()}, or --actor for one command.`,
  );
};

/** The app for one command, on the data of the server, which may be running. */
const sessionOf = (io: Io, app: App, configuration: Configuration, worker?: WorkerThread) => ({
  io,
  app,
  configuration,
  /** Appends and projects, if the command wants a thread for that and the log is embedded. */
  worker,
  /** Decides and writes as the operator, then waits until the read models show it. */
  write: async (tenantId: string, decide: Decide, actor?: string): Promise<Tenant> => {
    const request = operatorRequest(tenantId, actor ?? configuration.OPERATOR_ID, timesOf(io).waitMs);
    const { tenant, position, isShown } = await app.ledger.execute({ ...request, decide });
    if (actor === undefined) askForOperator(io, configuration);
    // The write has succeeded, so a new key must be printed even if the read models fail.
    const showing = isShown ?? app.show(tenantId, position, timesOf(io).tellMs);
    await Promise.resolve(showing).then(
      (shown) => (shown ? undefined : notice(io, BEHIND)),
      (error: unknown) => warn(io)('The change is made, but the read models do not show it yet.', error),
    );
    return tenant;
  },
  /** Decides about services and writes as the operator. No read model shows them. */
  writeServices: async (decide: DecideServices, actor?: string): Promise<void> => {
    await app.services.execute(decide, operatorActor(actor ?? configuration.OPERATOR_ID));
    if (actor === undefined) askForOperator(io, configuration);
  },
  services: (): Promise<Services> => app.services.all(monotonicMs() + timesOf(io).waitMs),
  /** Answers a question about the current state of the tenant, read from its stream. */
  ask: <T>(tenantId: string, answer: (tenant: Tenant) => T): Promise<T> =>
    app.ledger.ask(tenantId, monotonicMs() + timesOf(io).waitMs, answer),
  /** Waits until the read models have caught up with the log. False: not in time, and it has said how far they are. */
  upToDate: async (): Promise<boolean> => {
    const head = (await app.log.head())?.position ?? '';
    const isUpToDate = await withProgress(io, 'Projecting:', (line) =>
      app.catchUp(head, timesOf(io).tellMs, (done) => line.show(`${done} of ${head}`)),
    );
    if (!isUpToDate) notice(io, await howFar(app, head));
    return isUpToDate;
  },
});

export type OperatorSession = ReturnType<typeof sessionOf>;

const workerOf = (io: Io, configuration: Configuration): WorkerThread => {
  const { workerThread } = require('../app/worker-thread') as typeof import('../app/worker-thread');
  const onReport = (report: WorkerReport): void => {
    if (report.type === 'error') warn(io)(report.what, errorOf(report.failure));
  };
  return workerThread(configuration, onReport, (error) => warn(io)('The writing thread died.', error));
};

/** A command that opens the app, always closes it, and has the option `--json`. */
export const sessionCommand = <Arguments extends readonly unknown[]>(
  io: Io,
  name: string,
  run: (session: OperatorSession, ...args: Arguments) => Promise<void>,
  use: AppOptions['use'] = 'change',
  /** A thread appends and projects, so that this one can prepare the next events meanwhile. */
  { appendsInThread = false } = {},
): Command =>
  new Command(name).addOption(option.json()).action(async (...args: unknown[]) => {
    const { openApp } = require('../app/app') as typeof import('../app/app');
    const configuration = readConfiguration(io.env);
    ignoreCtrlZ(io);
    let app: App | undefined;
    const isThreaded = appendsInThread && configuration.EVENTSTORE_URL === '';
    const worker = isThreaded ? workerOf(io, configuration) : undefined;
    try {
      app = await openApp(configuration, warn(io), { use, worker, times: io.times });
      await run(sessionOf(io, app, configuration, worker), ...(args as unknown as Arguments));
    } finally {
      await app?.close();
    }
  });

/** A log, and how its address was given. */
export interface AddressedLog extends LedgerLog {
  readonly address: string;
}

/**
 * Opens a log for some work and always closes it. `configured` keeps a password in the environment: arguments are visible
 * to every user of the machine.
 */
export const withLog = async <T>(
  io: Io,
  role: 'source' | 'target',
  given: string,
  work: (log: AddressedLog) => Promise<T>,
): Promise<T> => {
  const { openLog } = require('../app/adapters') as typeof import('../app/adapters');
  const { EVENTSTORE_URL, DATA_DIR, STREAM_PREFIX } = readConfiguration(io.env);
  const address = given === 'configured' ? EVENTSTORE_URL || DATA_DIR : given;
  const streams = streamNames(STREAM_PREFIX);
  const log = await openLog(address, streams, role, warn(io));
  try {
    return await work({ address, streams, log });
  } finally {
    await log.close();
  }
};

/** Opens the configured log read-only. With an event store, nothing is read from the data folder. */
export const withConfiguredLog = async <T>(io: Io, work: (log: LedgerLog) => Promise<T>): Promise<T> => {
  const { mustHoldData } = require('../app/data-folder') as typeof import('../app/data-folder');
  mustHoldData(readConfiguration(io.env));
  return withLog(io, 'source', 'configured', work);
};
