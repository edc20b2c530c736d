import { readdirSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfiguration, type Configuration } from '../configuration';
import { logPath } from '../event-log/sqlite/log-file';
import { messageOf } from '../fault';
import { damageOf } from '../sqlite/database';
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

const problem = (check: string, finding: string, fix?: string): Finding => ({
  check,
  status: 'problem',
  finding,
  ...(fix === undefined ? {} : { fix }),
});

const unless = (isBad: boolean, found: Finding): Finding => (isBad ? found : ok(found.check, found.finding));

const roomFinding = ({ DATA_DIR }: Configuration): Finding => {
  const { bavail, blocks } = statfsSync(DATA_DIR);
  const free = `${Math.floor((100 * bavail) / blocks)}% of the disk that holds ${DATA_DIR} is free.`;
  const fix = 'Use a larger disk, or remove old read models: tenant-ledger projections prune';
  return unless(bavail / blocks < MIN_FREE, problem('room', free, fix));
};

const readModelsFinding = ({ read_models: { set, lag_seconds } }: LedgerStatus): Finding => {
  if (set !== null && lag_seconds <= MAX_LAG_SECONDS)
    return ok('read models', `Up to date: nothing has waited for over ${MAX_LAG_SECONDS} s to be followed.`);
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
  const hours = Math.floor((Date.now() - lastBackupMs(DATA_DIR)) / 3_600_000);
  const finding = Number.isNaN(hours) ? 'None is known of this log.' : `The last one is ${hours} h old.`;
  const fix = 'Every day: tenant-ledger backup create FOLDER. docs/backup.md has a timer for it.';
  return unless(!(hours <= MAX_BACKUP_HOURS), { check: 'backup', status: 'warning', finding, fix });
};

/** What works may be damaged all the same, in a part that nobody has read. */
const filesFinding = ({ DATA_DIR }: Configuration, { read_models: { set } }: LedgerStatus): Finding => {
  const folder = readModelsIn(DATA_DIR);
  const ofSet = set === null ? [] : readdirSync(folder).filter((name) => name.endsWith(`-${set}.db`));
  for (const path of [logPath(DATA_DIR), ...ofSet.map((name) => join(folder, name))]) {
    const damage = damageOf(path);
    const isLog = path === logPath(DATA_DIR);
    const fix = isLog
      ? 'Keep all files, and restore a backup: docs/first-fifteen-minutes.md.'
      : 'Build them again: tenant-ledger projections rebuild';
    if (damage !== undefined) return problem('files', `${path} is damaged: ${damage}.`, fix);
  }
  return ok('files', 'SQLite finds no damage in the log and the read models.');
};

/** In a cluster, one of the instances follows the log. */
const serverFinding = async (configuration: Configuration, status: LedgerStatus): Promise<Finding> => {
  const { log, projector = await runningServer(configuration, log.identity) } = status;
  const finding = projector ? `One runs: ${projector}.` : 'None was found that is running.';
  const fix = 'Start it: tenant-ledger serve';
  return unless(!projector, { check: 'server', status: 'warning', finding, fix });
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

/** Works beside a running service or without one, and changes nothing. */
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
