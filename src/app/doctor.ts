import { X509Certificate } from 'node:crypto';
import { readFileSync, statfsSync } from 'node:fs';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { readConfiguration, type Configuration } from '../configuration';
import { formats } from '../domain/formats';
import { messageOf } from '../fault';
import { programVersion } from '../version';
import { openApp, type App } from './app';
import { openToOthers } from './data-folder';
import { readModelStoreOf } from './log-address';
import { ledgerStatus, rebuildsUnderWay, type LedgerStatus } from './status';

/** The result of one check. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'problem';
  readonly finding: string;
  /** What to do about a problem, unless the finding already says so. */
  readonly fix?: string;
}

const ok = (check: string, finding: string): Finding => ({ check, status: 'ok', finding });
const problem = (check: string, finding: string, fix?: string): Finding => ({
  check,
  status: 'problem',
  finding,
  ...(fix === undefined ? {} : { fix }),
});

/** Leaves time to notice before the disk is full. */
const MIN_FREE = 0.1;
const MAX_LAG_SECONDS = 30;
/** Clocks that are synchronized differ by less. */
const MAX_AHEAD_MS = 5_000;
const EXPIRES_SOON_MS = 14 * 86_400_000;
const TLS_MS = 2_000;

const folderCheck = ({ DATA_DIR }: Configuration): Finding => {
  const exposed = openToOthers(DATA_DIR);
  return exposed === undefined
    ? ok('data folder', `${DATA_DIR} can be read by its owner only.`)
    : problem('data folder', `Other users may read data in ${DATA_DIR}.`, `chmod -R go= ${DATA_DIR}`);
};

const diskCheck = ({ DATA_DIR }: Configuration): Finding => {
  const { bavail, blocks } = statfsSync(DATA_DIR);
  const free = `${Math.floor((100 * bavail) / blocks)}% of the disk that holds ${DATA_DIR} is free.`;
  return bavail / blocks >= MIN_FREE
    ? ok('disk', free)
    : problem('disk', free, 'Use a larger disk, or remove old read models: tenant-ledger projections prune');
};

const logCheck = async ({ watch }: App): Promise<Finding> => {
  await watch.look();
  const broken = watch.setBack() ?? watch.missing();
  return broken === undefined
    ? ok('event log', 'Reachable, and complete up to what the read models show.')
    : problem(
        'event log',
        broken.message,
        'Restore the right log, or: tenant-ledger projections rebuild --all',
      );
};

/** The first write starts the writer thread, which on a busy machine may take longer than a write is allowed to. */
const ATTEMPTS = 5;

const writeCheck = async ({ watch }: App): Promise<Finding> => {
  for (let attempt = 1; ; attempt += 1)
    try {
      await watch.mustBeWritable();
      return ok('writing', 'The event log can be written.');
    } catch (error) {
      if (attempt < ATTEMPTS) continue;
      return problem('writing', messageOf(error), 'Bring back the disk or the event store that it names.');
    }
};

/** Events bear the time of the machine that wrote them. Only the last ones: what is older says little about clocks now. */
const clockCheck = async ({ log }: App): Promise<Finding> => {
  if (log.latestTime === undefined)
    return ok('clock', 'Not checked: the event store stamps events with its own clock.');
  const latest = Date.parse((await log.latestTime()) ?? '');
  return latest > Date.now() + MAX_AHEAD_MS
    ? problem(
        'clock',
        'Events were recorded at a time that this machine has not reached yet.',
        'Set the clock of this machine, or of the one that wrote them: docs/operations.md, "Clock jumps".',
      )
    : ok('clock', 'None of the last events is ahead of the clock of this machine.');
};

const formatCheck = async ({ log }: App): Promise<Finding> => {
  const format = await log.format();
  const refused = formats.filter((newer) => newer.format > format).map(({ allows }) => allows);
  return refused.length === 0
    ? ok('format', `The event log has format ${format}, the newest that this program knows.`)
    : problem(
        'format',
        `The event log has format ${format}: an upgrade is not finished. Refused with 409 until then: ${refused.join('; ')}.`,
        'When no older program runs any more: tenant-ledger log upgrade',
      );
};

const versionCheck = async (app: App): Promise<Finding> =>
  ok(
    'versions',
    `tenant-ledger ${programVersion()}, Node ${process.versions.node}, ${(await app.software()).join(', ')}.`,
  );

const rebuildCheck = async ({ replay }: App): Promise<Finding> => {
  const running = await rebuildsUnderWay(replay.readModels);
  const descriptions = running.map(
    ({ projection, holder, progress }) => `${projection} by ${holder} (${Math.floor(100 * progress)}%)`,
  );
  return ok(
    'rebuilds',
    descriptions.length === 0 ? 'None is running.' : `Running: ${descriptions.join(', ')}.`,
  );
};

const lagCheck = (projections: LedgerStatus['projections']): Finding => {
  const late = projections.filter(({ lag_seconds }) => lag_seconds > MAX_LAG_SECONDS);
  return late.length === 0
    ? ok('read models', 'Up to date, or less than 30 s behind.')
    : problem(
        'read models',
        late
          .map(({ projection, lag_seconds }) => `${projection} is ${Math.round(lag_seconds)} s behind.`)
          .join(' '),
        'See whether they catch up: tenant-ledger projections status. If not, the log of the service says why.',
      );
};

const projectionChecks = ({ projector, projections, decisions }: LedgerStatus): readonly Finding[] => {
  const damage = projections.flatMap((projection) => projection.damage ?? []);
  const parkedAt = projections.flatMap(({ projection, parked }) =>
    parked.map(({ event_id }) => `${event_id} in ${projection}`),
  );
  return [
    projector === null
      ? problem('projector', 'No process projects.', 'Start the service: tenant-ledger serve')
      : ok('projector', `${projector} projects.`),
    ...(damage.length === 0
      ? [lagCheck(projections)]
      : damage.map((finding) => problem('read models', finding))),
    parkedAt.length === 0
      ? ok('parked tenants', 'None.')
      : problem(
          'parked tenants',
          `Parked at ${parkedAt.slice(0, 3).join(', ')}${parkedAt.length > 3 ? ` and ${parkedAt.length - 3} more` : ''}.`,
          'See why: tenant-ledger projections parked. Then start a program that can read it, or: tenant-ledger projections set-aside EVENT_ID --reason TEXT',
        ),
    decisions.parked.length === 0
      ? ok('decisions', 'Every tenant that was checked can be read.')
      : problem(
          'decisions',
          `The stream of the tenant ${decisions.parked[0]?.tenant_id} cannot be read: ${decisions.parked[0]?.reason}`,
          'Start a program that can read it, or restore the log from a backup that has its events.',
        ),
  ];
};

const expiryCheck = (what: string, certificate: X509Certificate): Finding => {
  const remainingMs = Date.parse(certificate.validTo) - Date.now();
  return remainingMs > EXPIRES_SOON_MS
    ? ok('certificate', `${what} is valid until ${certificate.validTo}.`)
    : problem(
        'certificate',
        `${what} ${remainingMs > 0 ? 'expires' : 'expired'} on ${certificate.validTo}.`,
        'Renew it where TLS ends.',
      );
};

/** The certificate that clients of `PUBLIC_URL` get, valid or not. */
const servedCertificate = (url: URL): Promise<X509Certificate> =>
  new Promise((resolve, reject) => {
    const port = url.port === '' ? 443 : Number(url.port);
    const servername = isIP(url.hostname) === 0 ? { servername: url.hostname } : {};
    const options = { host: url.hostname, port, ...servername, rejectUnauthorized: false };
    const socket = connect(options, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate === undefined) reject(new Error('It shows no certificate.'));
      else resolve(certificate);
    });
    socket.setTimeout(TLS_MS, () => socket.destroy(new Error('It does not answer.')));
    socket.on('error', reject);
  });

const publicCertificateCheck = async (url: string): Promise<Finding> => {
  try {
    return expiryCheck(`The certificate of ${url}`, await servedCertificate(new URL(url)));
  } catch (error) {
    return problem(
      'certificate',
      `${url} cannot be asked for its certificate: ${messageOf(error)}`,
      'Check PUBLIC_URL, and the proxy in front of the service.',
    );
  }
};

const authorityChecks = ({ EVENTSTORE_URL, MONGODB_URL }: Configuration): readonly Finding[] =>
  [EVENTSTORE_URL, MONGODB_URL].flatMap((url) => {
    const file = /[?&]tlsCAFile=([^&]+)/i.exec(url)?.[1];
    if (file === undefined) return [];
    try {
      return [
        expiryCheck(`The authority ${file}`, new X509Certificate(readFileSync(decodeURIComponent(file)))),
      ];
    } catch (error) {
      return [
        problem('certificate', `${file} cannot be read: ${messageOf(error)}`, 'Check tlsCAFile in the URL.'),
      ];
    }
  });

const certificateChecks = async (configuration: Configuration): Promise<readonly Finding[]> => {
  const { PUBLIC_URL } = configuration;
  const served = PUBLIC_URL.startsWith('https:') ? [await publicCertificateCheck(PUBLIC_URL)] : [];
  return [...authorityChecks(configuration), ...served];
};

const appChecks = async (app: App, configuration: Configuration): Promise<readonly Finding[]> => [
  ok('stores', `${app.store}; ${readModelStoreOf(configuration)}`),
  await versionCheck(app),
  await logCheck(app),
  ok('streams', 'Not checked, because it takes reading the whole log: tenant-ledger log verify'),
  await formatCheck(app),
  await writeCheck(app),
  await clockCheck(app),
  ok('indexes', 'Not checked: one that is missing is made when its store is opened for writing.'),
  await rebuildCheck(app),
  ...projectionChecks(await ledgerStatus(app)),
];

/** Checks for every problem seen so far, next to a running service or without one. Changes nothing. */
export const diagnose = async (env: NodeJS.ProcessEnv): Promise<readonly Finding[]> => {
  let configuration: Configuration;
  try {
    configuration = readConfiguration(env);
  } catch (error) {
    return [problem('configuration', messageOf(error))];
  }
  const findings = [ok('configuration', 'Every setting is valid.')];
  try {
    const app = await openApp(configuration, () => undefined, { createsData: false });
    try {
      findings.push(
        folderCheck(configuration),
        diskCheck(configuration),
        ...(await appChecks(app, configuration)),
      );
    } finally {
      await app.close();
    }
  } catch (error) {
    findings.push(problem('stores', messageOf(error)));
  }
  return [...findings, ...(await certificateChecks(configuration))];
};
