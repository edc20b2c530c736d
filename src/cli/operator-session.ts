import { Command } from 'commander';
import { randomUUID } from 'node:crypto';
import { openApp, type App } from '../app/app';
import { operatorRequest } from '../app/operator';
import { monotonicMs } from '../async/clock';
import { readConfiguration, settings, type Configuration } from '../configuration';
import type { Decide, Tenant } from '../domain/tenant';
import type { Position } from '../event-log/event-log';
import { messageOf } from '../fault';
import { isDamage } from '../read-models/damage';
import { jsonOption } from './arguments';
import { ignoreCtrlZ, notice } from './output';
import { withProgress } from './progress';
import type { Io } from './io';

const WRITE_MS = 5_000;
const CATCH_UP_MS = 2_000;

export const BEHIND = 'The read models do not show it yet; the process that projects them is behind.';

/** Prints a report of the app: a warning, or without an error a recovery. */
export const warn =
  (io: Io) =>
  (what: string, error?: unknown): void =>
    notice(io, error === undefined || messageOf(error) === what ? what : `${what} ${messageOf(error)}`);

/** Waits until the read models have applied this position, or for a while. */
const catchUp = async (io: Io, { projecting }: App, position: Position): Promise<void> => {
  const reached = await withProgress(io, 'Projecting:', (line) =>
    projecting.catchUp(position, CATCH_UP_MS, (done) => line.show(`${done} of ${position}`)),
  );
  if (!reached) notice(io, BEHIND);
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
const sessionOf = (io: Io, app: App, configuration: Configuration) => ({
  io,
  app,
  configuration,
  /** Decides and writes as the operator, then waits until the read models show it. */
  write: async (tenantId: string, decide: Decide, actor?: string): Promise<Tenant> => {
    const request = operatorRequest(tenantId, actor ?? configuration.OPERATOR_ID, WRITE_MS);
    const { tenant, position } = await app.ledger.execute({ ...request, decide });
    if (actor === undefined) askForOperator(io, configuration);
    // The write has succeeded, so a new key must be printed even if the read models fail.
    await catchUp(io, app, position).catch((error: unknown) =>
      warn(io)('The change is made, but the read models do not show it yet.', error),
    );
    return tenant;
  },
  /** The current state of the tenant, read from its stream. */
  stateOf: (tenantId: string): Promise<Tenant> => app.ledger.stateOf(tenantId, monotonicMs() + WRITE_MS),
  /** Waits until the read models have caught up with the log, or for a while. Tells which of them cannot. */
  upToDate: async (): Promise<void> => {
    const head = await app.log.head();
    await catchUp(io, app, head?.position ?? '').catch((error: unknown) => {
      if (!isDamage(error)) throw error;
      // A command fails only if it needs this one.
      notice(io, messageOf(error));
    });
  },
});

export type OperatorSession = ReturnType<typeof sessionOf>;

/**
 * Opens the app for one command and always closes it. Only commands that can start a new ledger create missing data.
 */
export const inSession = async <T>(
  io: Io,
  work: (session: OperatorSession) => Promise<T>,
  { createsData = false } = {},
): Promise<T> => {
  const configuration = readConfiguration(io.env);
  ignoreCtrlZ(io);
  const app = await openApp(configuration, warn(io), { createsData });
  try {
    return await work(sessionOf(io, app, configuration));
  } finally {
    await app.close();
  }
};

/** A command that runs in a session and has the option `--json`. */
export const sessionCommand = <Arguments extends readonly unknown[]>(
  io: Io,
  name: string,
  run: (session: OperatorSession, ...args: Arguments) => Promise<void>,
  options: { createsData?: boolean } = {},
): Command =>
  new Command(name)
    .addOption(jsonOption())
    .action((...args: unknown[]) =>
      inSession(io, (session) => run(session, ...(args as unknown as Arguments)), options),
    );
