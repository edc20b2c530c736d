import { statfsSync } from 'node:fs';
import { readConfiguration, type Configuration } from '../configuration';
import { messageOf } from '../fault';
import { openApp } from './app';
import { readModelStoreOf } from './log-address';
import { ledgerStatus, type LedgerStatus } from './status';

/** The result of one check. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'problem';
  readonly finding: string;
  /** What to do about a problem, unless the finding already says so. */
  readonly fix?: string;
}

/** Leaves time to notice before the disk is full. */
const MIN_FREE = 0.1;
const MAX_LAG_SECONDS = 30;
const MAX_NAMED = 3;

const ok = (check: string, finding: string): Finding => ({ check, status: 'ok', finding });

const problem = (check: string, finding: string, fix?: string): Finding => ({
  check,
  status: 'problem',
  finding,
  ...(fix === undefined ? {} : { fix }),
});

const roomFinding = ({ DATA_DIR }: Configuration): Finding => {
  const { bavail, blocks } = statfsSync(DATA_DIR);
  const free = `${Math.floor((100 * bavail) / blocks)}% of the disk that holds ${DATA_DIR} is free.`;
  return bavail / blocks >= MIN_FREE
    ? ok('room', free)
    : problem('room', free, 'Use a larger disk, or remove old read models: tenant-ledger projections prune');
};

const readModelsFinding = ({ read_models: { set, lag_seconds } }: LedgerStatus): Finding => {
  if (set !== null && lag_seconds <= MAX_LAG_SECONDS)
    return ok(
      'read models',
      `Up to date: nothing has waited for more than ${MAX_LAG_SECONDS} s to be followed.`,
    );
  return problem(
    'read models',
    set === null
      ? 'They are not built yet by this version of the program.'
      : `An event has waited for ${Math.round(lag_seconds)} s in the log and is not yet followed.`,
    'Start the service. If that does not help, its log says why; tenant-ledger projections rebuild builds them again.',
  );
};

const parkedFinding = ({ read_models, unreadable }: LedgerStatus): Finding => {
  const parked = [...unreadable, ...read_models.parked];
  const all = [...new Set(parked.map(({ tenant_id, event_id }) => `${tenant_id} at event ${event_id}`))];
  if (all.length === 0) return ok('parked tenants', 'None.');
  const more = all.length > MAX_NAMED ? ` and ${all.length - MAX_NAMED} more` : '';
  return problem(
    'parked tenants',
    `${all.slice(0, MAX_NAMED).join(', ')}${more}.`,
    'See why: tenant-ledger status. Then start a program that can read it, or: tenant-ledger projections set-aside EVENT_ID --reason TEXT',
  );
};

/** It is derived from the secret: another secret, another key. */
const evidenceFinding = ({ SECRET, MONGODB_URL, DATA_DIR }: Configuration): Finding => {
  const made = MONGODB_URL === '' ? `${DATA_DIR}/secret` : 'MongoDB';
  return ok(
    'key of evidence',
    SECRET !== ''
      ? 'It is derived from SECRET.'
      : `It is derived from the secret that the service made for itself, in ${made}: if that is lost, checkpoints are signed by another key. Keep a copy, or set SECRET.`,
  );
};

const storeFindings = async (configuration: Configuration): Promise<readonly Finding[]> => {
  const app = await openApp(configuration, () => undefined, { use: 'look' });
  try {
    const status = await ledgerStatus(app, { readsParked: true });
    return [
      ok('stores', `${app.store}; ${readModelStoreOf(configuration)}`),
      ...(configuration.EVENTSTORE_URL === '' ? [roomFinding(configuration)] : []),
      readModelsFinding(status),
      parkedFinding(status),
      evidenceFinding(configuration),
    ];
  } finally {
    await app.close();
  }
};

/** Checks the settings, the stores, room, how far the log is followed and parked tenants, beside a running service or without one. Changes nothing. */
export const diagnose = async (env: NodeJS.ProcessEnv): Promise<readonly Finding[]> => {
  const findings: Finding[] = [];
  let check = 'settings';
  try {
    const configuration = readConfiguration(env);
    findings.push(ok(check, 'Every setting is valid.'));
    check = 'stores';
    findings.push(...(await storeFindings(configuration)));
  } catch (error) {
    findings.push(problem(check, messageOf(error)));
  }
  return findings;
};
