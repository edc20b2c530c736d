import { openApp, type App } from '../app/app';
import { monotonicMs } from '../clock';
import { readConfiguration, type Configuration } from '../configuration';
import { mustHoldData } from '../app/data-folder';
import { operatorCaller } from '../app/operator';
import type { Decide, Tenant } from '../domain/tenant';
import type { Position } from '../event-log/event-log';
import { messageOf } from '../fault';
import { progressLine, say } from './output';

/** Where an operator sits: the app on the same data as the server, whether that runs or not. */
export interface Desk {
  readonly app: App;
  readonly configuration: Configuration;
  /** Decides and writes as the operator, then waits until the read models show it. */
  write(tenantId: string, decide: Decide, actor?: string): Promise<Tenant>;
  /** The tenant as its own stream has it now. */
  stateOf(tenantId: string): Promise<Tenant>;
  /** Makes sure that what is read next is up to date. */
  upToDate(): Promise<void>;
}

const WRITE_MS = 5_000;
const SHOWN_MS = 2_000;

/** What is written is written: a new key must be told, whatever becomes of the read models. */
const notShown = (error: unknown): void =>
  say(`The change is made, but the read models do not show it yet. ${messageOf(error)}`);

export const behind = 'The read models do not show it yet; the process that projects them is behind.';

/**
 * Opens the app for one command and closes it again, whatever happens. Only a command that begins something new makes the
 * data that it does not find.
 */
export const atDesk = async <T>(work: (desk: Desk) => Promise<T>, { makesData = false } = {}): Promise<T> => {
  const configuration = readConfiguration(process.env);
  if (!makesData) mustHoldData(configuration);
  const app = await openApp(configuration, (what, error) =>
    say(error === undefined ? what : `${what} ${messageOf(error)}`),
  );

  const shown = async (position: Position): Promise<void> => {
    const line = progressLine('Projecting:');
    const tell = (done: Position): void => line.tell(`${done} of ${position}`);
    const reached = await app.projecting.catchUp(position, SHOWN_MS, tell).finally(line.end);
    if (!reached) say(behind);
  };

  try {
    return await work({
      app,
      configuration,
      write: async (tenantId, decide, actor = configuration.OPERATOR_ID) => {
        const at = new Date().toISOString();
        const deadline = monotonicMs() + WRITE_MS;
        const command = { tenantId, caller: operatorCaller(actor), decide, at, deadline };
        const { tenant, position } = await app.ledger.execute(command);
        await shown(position).catch(notShown);
        return tenant;
      },
      stateOf: (tenantId) => app.ledger.askAtHead(tenantId, (tenant) => tenant, monotonicMs() + WRITE_MS),
      upToDate: async () => {
        const head = await app.log.head();
        if (head !== undefined) await shown(head.position);
      },
    });
  } finally {
    await app.close();
  }
};
