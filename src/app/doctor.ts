import { X509Certificate } from 'node:crypto';
import { readFileSync, statfsSync } from 'node:fs';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { DAY_MS } from '../async/clock';
import { readConfiguration, type Configuration } from '../configuration';
import { messageOf } from '../fault';
import type { LedgerStatus } from '../projecting/status';
import { programVersion } from '../version';
import { openApp, type App } from './app';
import { openToOthers } from './data-folder';
import { readModelStoreOf } from './log-address';
import { ledgerStatus } from './status';

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
const EXPIRES_SOON_DAYS = 14;
const TLS_MS = 2_000;

/** What to do about a problem, for checks that have one way out. */
const FIXES: Readonly<Record<string, string>> = {
  disk: 'Use a larger disk, or remove old read models: tenant-ledger projections prune',
  'event log': 'Restore the right log, or: tenant-ledger projections rebuild',
  writing: 'Repair the disk or the event store named above.',
  projector: 'Start the service: tenant-ledger serve',
  'parked tenants':
    'See why: tenant-ledger status. Then start a program that can read it, or: tenant-ledger projections set-aside EVENT_ID --reason TEXT',
  decisions: 'Start a program that can read it, or restore the log from a backup that has its events.',
};

/** A row of the table: what to say if all is well, and the problem if there is one. */
const row = (check: string, finding: string, problem?: string | false, fix = FIXES[check]): Finding =>
  typeof problem !== 'string'
    ? { check, status: 'ok', finding }
    : { check, status: 'problem', finding: problem, ...(fix === undefined ? {} : { fix }) };

const folderFindings = ({ DATA_DIR }: Configuration): readonly Finding[] => {
  const { bavail, blocks } = statfsSync(DATA_DIR);
  const free = `${Math.floor((100 * bavail) / blocks)}% of the disk that holds ${DATA_DIR} is free.`;
  const exposed = openToOthers(DATA_DIR) !== undefined && `Other users may read data in ${DATA_DIR}.`;
  return [
    row('data folder', `${DATA_DIR} can be read by its owner only.`, exposed, `chmod -R go= ${DATA_DIR}`),
    row('disk', free, bavail / blocks < MIN_FREE && free),
  ];
};

const readModelFindings = (projections: LedgerStatus['projections']): readonly Finding[] => {
  const damage = projections.flatMap((projection) => projection.damage ?? []);
  if (damage.length > 0) return damage.map((finding) => row('read models', '', finding));
  const missing = projections.filter(({ generation }) => generation === null);
  if (missing.length > 0) {
    const names = missing.map(({ projection }) => projection).join(', ');
    const build = 'Start the service, or: tenant-ledger projections rebuild';
    return [row('read models', '', `Not built yet by this version of the program: ${names}.`, build)];
  }
  const late = projections
    .filter(({ lag_seconds }) => lag_seconds > MAX_LAG_SECONDS)
    .map(({ projection, lag_seconds }) => `${projection} is ${Math.round(lag_seconds)} s behind.`);
  const fix = 'See whether they catch up: tenant-ledger status. If not, the log of the service says why.';
  return [
    row('read models', 'Up to date, or less than 30 s behind.', late.length > 0 && late.join(' '), fix),
  ];
};

const parkedFinding = (projections: LedgerStatus['projections']): Finding => {
  const at = projections.flatMap(({ projection, parked }) =>
    parked.map(({ event_id }) => `${event_id} in ${projection}`),
  );
  const more = at.length > 3 ? ` and ${at.length - 3} more` : '';
  return row('parked tenants', 'None.', at.length > 0 && `Parked at ${at.slice(0, 3).join(', ')}${more}.`);
};

const statusFindings = (
  { projector, projections, decisions }: LedgerStatus,
  isWritable: boolean,
): readonly Finding[] => {
  const [unreadable] = decisions.parked;
  const fix = isWritable
    ? FIXES['projector']
    : 'First make writing possible: until then, no service can project.';
  return [
    row('projector', `${projector} projects.`, projector === null && 'No process projects.', fix),
    ...readModelFindings(projections),
    parkedFinding(projections),
    row(
      'decisions',
      'Every tenant that was checked can be read.',
      unreadable && `The stream of the tenant ${unreadable.tenant_id} cannot be read: ${unreadable.reason}`,
    ),
  ];
};

const expiryFinding = (what: string, { validTo }: X509Certificate): Finding => {
  const remainingMs = Date.parse(validTo) - Date.now();
  return row(
    'certificate',
    `${what} is valid until ${validTo}.`,
    remainingMs <= EXPIRES_SOON_DAYS * DAY_MS &&
      `${what} ${remainingMs > 0 ? 'expires' : 'expired'} on ${validTo}.`,
    'Renew it where TLS ends.',
  );
};

/** The certificate that clients of `PUBLIC_URL` get, valid or not. */
const servedCertificate = (url: URL): Promise<X509Certificate> =>
  new Promise((resolve, reject) => {
    const port = url.port === '' ? 443 : Number(url.port);
    // A URL has an IPv6 address in brackets.
    const host = url.hostname.replaceAll(/[[\]]/g, '');
    const servername = isIP(host) === 0 ? { servername: host } : {};
    const options = { host, port, ...servername, rejectUnauthorized: false };
    const socket = connect(options, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate === undefined) reject(new Error('It shows no certificate.'));
      else resolve(certificate);
    });
    socket.setTimeout(TLS_MS, () => socket.destroy(new Error('It does not answer.')));
    socket.on('error', reject);
  });

const certificateFinding = async (
  what: string,
  get: () => X509Certificate | Promise<X509Certificate>,
  fix: string,
): Promise<Finding> => {
  try {
    return expiryFinding(what, await get());
  } catch (error) {
    return row('certificate', '', `${what} cannot be read: ${messageOf(error)}`, fix);
  }
};

const certificateFindings = ({
  EVENTSTORE_URL,
  MONGODB_URL,
  PUBLIC_URL,
}: Configuration): Promise<readonly Finding[]> => {
  const authorities = [EVENTSTORE_URL, MONGODB_URL].flatMap((url) => {
    const file = /[?&]tlsCAFile=([^&]+)/i.exec(url)?.[1];
    const read = () => new X509Certificate(readFileSync(decodeURIComponent(file ?? '')));
    return file === undefined
      ? []
      : [certificateFinding(`The authority ${file}`, read, 'Check tlsCAFile in the URL.')];
  });
  const served = () => servedCertificate(new URL(PUBLIC_URL));
  const fix = 'Check PUBLIC_URL, and the proxy in front of the service.';
  return Promise.all([
    ...authorities,
    ...(PUBLIC_URL.startsWith('https:')
      ? [certificateFinding(`The certificate of ${PUBLIC_URL}`, served, fix)]
      : []),
  ]);
};

const appFindings = async (app: App, configuration: Configuration): Promise<readonly Finding[]> => {
  await app.watch.check();
  const status = await ledgerStatus(app);
  const notWritable = await app.watch.mustBeWritable().then(() => undefined, messageOf);
  const software = [`tenant-ledger ${programVersion()}`, `Node ${process.versions.node}`].concat(
    await app.software(),
  );
  return [
    ...folderFindings(configuration),
    row('stores', `${app.store}; ${readModelStoreOf(configuration)}`),
    row('versions', `${software.join(', ')}.`),
    row('event log', 'Reachable, and complete up to what the read models show.', status.log.trouble),
    row('streams', 'Not checked, because it takes reading the whole log: tenant-ledger log verify'),
    row('writing', 'The event log can be written.', notWritable),
    row('indexes', 'Not checked: a missing one is created when its store is opened for writing.'),
    ...statusFindings(status, notWritable === undefined),
  ];
};

const storeFindings = async (configuration: Configuration): Promise<readonly Finding[]> => {
  try {
    const app = await openApp(configuration, () => undefined, { createsData: false });
    try {
      return await appFindings(app, configuration);
    } finally {
      await app.close();
    }
  } catch (error) {
    return [row('stores', '', messageOf(error))];
  }
};

/** Checks for every problem seen so far, next to a running service or without one. Changes nothing. */
export const diagnose = async (env: NodeJS.ProcessEnv): Promise<readonly Finding[]> => {
  let configuration: Configuration;
  try {
    configuration = readConfiguration(env);
  } catch (error) {
    return [row('configuration', '', messageOf(error))];
  }
  return [
    row('configuration', 'Every setting is valid.'),
    ...(await storeFindings(configuration)),
    ...(await certificateFindings(configuration)),
  ];
};
