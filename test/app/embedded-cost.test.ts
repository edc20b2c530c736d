import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import { freshFolder } from '../support/folders';
import { ask, type AskOptions } from '../support/http';
import { EMBEDDED } from '../support/profile';
import { allProjected, commandJson, serviceProcess, type ServiceProcess } from '../support/service';
import { tracedInto, type Executed } from '../support/traced-sqlite';
import { until } from '../support/waiting';

/** Values of `PRAGMA synchronous`. OFF is 0. */
const FULL = 2;
const NORMAL = 1;

/** A tenant's stream is read again after 500 ms. */
const STALE_MS = 600;

describe('a request in the embedded profile', () => {
  const trace = join(freshFolder(), 'statements');
  let service: ServiceProcess;
  beforeAll(async () => {
    service = await serviceProcess({ ...EMBEDDED, ...tracedInto(trace) });
    await request();
    // The first use of a key on a day is recorded, which is a write of its own.
    const recorded = () => ask(`${service.url}/events?type=KeyUsed`, { key: service.key });
    await until(async () => (await recorded()).text.includes('"KeyUsed"'));
    await allProjected(service);
  });
  afterAll(() => service.kill());

  const request = async (options: AskOptions = {}): Promise<void> => {
    const { status, headers } = await ask(`${service.url}/tenants/self`, { key: service.key, ...options });
    expect([status, headers.get('SVC-READ-PENDING')]).toEqual([200, null]);
  };
  const write = (): Promise<void> => request({ method: 'PUT', body: { name: 'Acme' } });
  const appendElsewhere = () =>
    commandJson(['tenant', 'create', '--name', 'Other'], { DATA_DIR: service.folder, ...EMBEDDED });

  const executed = (): readonly Executed[] =>
    readFileSync(trace, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Executed);
  const executedBy = async (work: () => Promise<void>): Promise<readonly Executed[]> => {
    const before = executed().length;
    await work();
    return executed().slice(before);
  };

  it('that writes commits to the log, synced, and then to the set, not synced but never OFF', async () => {
    const writes: (readonly Executed[])[] = [];
    while (writes.length < 5) writes.push((await executedBy(write)).filter(({ sql }) => sql === 'COMMIT'));
    // What keys did is recorded now and then, beside the writes.
    const [, , median] = writes.toSorted((a, b) => a.length - b.length);
    expect(median).toEqual([
      expect.objectContaining({ file: 'events.db', synchronous: FULL }),
      expect.objectContaining({ file: expect.stringMatching(/^set-/), synchronous: NORMAL }),
    ]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['right after another one', () => request()],
    ['right after a write', write],
    ['some time after a write', () => write().then(() => pause(STALE_MS))],
    ['when nothing was appended for some time', () => request().then(() => pause(STALE_MS))],
    [
      'when another process has appended',
      () =>
        request()
          .then(() => pause(STALE_MS))
          .then(appendElsewhere),
    ],
  ])('that reads the tenant executes at most four statements, %s', async (_, happens) => {
    await happens();
    const statements = (await executedBy(request)).filter(({ thread }) => thread === 'main');
    expect(statements.length).toBeGreaterThanOrEqual(2);
    expect(statements.length).toBeLessThanOrEqual(4);
  });
});
