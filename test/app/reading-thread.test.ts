import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { readingThread, type ReadingThread } from '../../src/app/reading-thread';
import { monotonicMs } from '../../src/async/clock';
import { readConfiguration } from '../../src/configuration';
import { freshFolder } from '../support/folders';
import { closeLedgers, makeCustomer, openLedger } from '../support/ledgers';
import { until } from '../support/waiting';

const MORTAL = join(__dirname, '..', 'support', 'mortal-reading-worker.js');
const NEVER = new AbortController().signal;

describe('the reading thread', () => {
  const folder = freshFolder();
  const configuration = readConfiguration({ DATA_DIR: folder });
  let tenantId: string;
  let reading: ReadingThread;
  const reports: string[] = [];
  const deaths: string[] = [];
  const listeners = {
    onError: (what: string): void => void reports.push(what),
    onDeath: (error: Error): void => void deaths.push(error.message),
  };
  const nameOf = async (): Promise<string | undefined> => {
    const moment = { time: '2099-01-01T00:00:00.000Z' };
    const deadline = monotonicMs() + 20_000;
    return (await reading.tenantAt(tenantId, moment, { deadline, gone: NEVER }))?.name;
  };
  beforeAll(async () => {
    ({ tenantId } = await makeCustomer(await openLedger(folder)));
    await closeLedgers();
  });
  beforeEach(() => {
    reports.splice(0);
    deaths.splice(0);
  });
  afterEach(() => reading.close());

  const threads = (): number =>
    process.getActiveResourcesInfo().filter((resource) => resource === 'MessagePort').length;

  it('is started by the first task, ended when there was none for a while, and started again', async () => {
    reading = readingThread(configuration, listeners, { idleMs: 50 });
    const before = threads();
    expect(await nameOf()).toBe('Acme');
    expect(threads()).toBeGreaterThan(before);
    await until(() => threads() === before);
    expect(await nameOf()).toBe('Acme');
    expect(reports).toEqual([]);
  });

  it('fails what was under way when it dies, and says what it died of', async () => {
    reading = readingThread(configuration, listeners, { file: MORTAL });
    await expect(nameOf()).rejects.toMatchObject({ code: 'log_unavailable' });
    await until(() => deaths.length > 0);
    expect(deaths).toEqual(['It was too much.']);
  });

  it('says that the log cannot be opened, and tries again with the next task', async () => {
    reading = readingThread(configuration, listeners);
    const away = `${folder}-away`;
    renameSync(folder, away);
    mkdirSync(folder);
    await expect(nameOf()).rejects.toMatchObject({ code: 'log_unavailable' });
    renameSync(folder, `${folder}-empty`);
    renameSync(away, folder);
    await until(async () => (await nameOf().catch(() => undefined)) === 'Acme');
    expect(reports).toEqual(['The thread that reads the event log cannot open it.']);
    expect(deaths).toEqual([]);
  });
});
