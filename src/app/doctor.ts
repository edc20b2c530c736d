import { readdirSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration, type Configuration } from '../configuration';
import { logPath } from '../event-log/sqlite/log-file';
import { messageOf } from '../fault';
import { damageIn, openForReading } from '../sqlite/database';
import { openApp } from './app';
import { lastBackupMs } from './backups';
import { readModelsIn } from './data-folder';
import { readModelStoreOf } from './log-address';
import { runningServer } from './running-server';
import { ledgerStatus, type LedgerStatus } from './status';

/** The result of one check. */
export interface Finding {
  readonly check: string;
  /** `warning`: it works, but somebody should know. */
  readonly status: 'ok' | 'warning' | 'problem';
  readonly finding: string;
  /** What to do about a problem, unless the finding already says so. */
  readonly fix?: string;
}

/** Leaves time to notice before the disk is full. */
const MIN_FREE = 0.1;
const MAX_LAG_SECONDS = 30;
const MAX_NAMED = 3;

const ok = (check: string, finding: string): Finding => ({ check, status: 'ok', finding });

const warning = (check: string, finding: string, fix: string): Finding => ({
  check,
  status: 'warning',
  finding,
  fix,
});

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

/** As `TenantLedgerBackupOld` in docs/monitoring/alerts.yml. */
const MAX_BACKUP_HOURS = 26;

const backupFinding = ({ DATA_DIR }: Configuration): Finding => {
  const hours = (Date.now() - lastBackupMs(DATA_DIR)) / 3_600_000;
  const fix = 'Every day: tenant-ledger backup create FOLDER. docs/backup.md has a timer for it.';
  if (Number.isNaN(hours)) return warning('backup', 'None is known of this log.', fix);
  const age = `The last one succeeded ${hours < 48 ? `${Math.floor(hours)} h` : `${Math.floor(hours / 24)} days`} ago.`;
  return hours > MAX_BACKUP_HOURS ? warning('backup', age, fix) : ok('backup', age);
};

const damageOf = (path: string): string | undefined => {
  try {
    const db = openForReading(path);
    try {
      return damageIn(db);
    } finally {
      db.close();
    }
  } catch (error) {
    return messageOf(error);
  }
};

/** What works may be damaged all the same, in a part that nobody has read. */
const filesFinding = ({ DATA_DIR }: Configuration, { read_models: { set } }: LedgerStatus): Finding => {
  const damaged = damageOf(logPath(DATA_DIR));
  if (damaged !== undefined)
    return problem(
      'files',
      `events.db is damaged: ${damaged}.`,
      'Keep all files, and restore a backup: docs/first-fifteen-minutes.md.',
    );
  const folder = readModelsIn(DATA_DIR);
  const file = set === null ? undefined : readdirSync(folder).find((name) => name.endsWith(`-${set}.db`));
  const stale = file === undefined ? undefined : damageOf(join(folder, file));
  if (stale === undefined) return ok('files', 'SQLite finds no damage in the log and the read models.');
  return problem(
    'files',
    `${file} is damaged: ${stale}.`,
    'Build them again: tenant-ledger projections rebuild',
  );
};

/** In a cluster, one of the instances follows the log. */
const serverFinding = async (configuration: Configuration, status: LedgerStatus): Promise<Finding> => {
  const { log, projector = await runningServer(configuration, log.identity) } = status;
  return projector
    ? ok('server', `One runs: ${projector}.`)
    : warning('server', 'None was found that is running.', 'Start it: tenant-ledger serve');
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
      await serverFinding(configuration, status),
      ...(configuration.EVENTSTORE_URL === ''
        ? [roomFinding(configuration), backupFinding(configuration), filesFinding(configuration, status)]
        : []),
      readModelsFinding(status),
      parkedFinding(status),
      evidenceFinding(configuration),
    ];
  } finally {
    await app.close();
  }
};

/** Checks settings, stores, backup, files, how far the log is followed and parked tenants, beside a running service or without one. Changes nothing. */
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
