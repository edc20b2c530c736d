import { randomUUID } from 'node:crypto';
import { tenants } from '../../projections/tenants';
import { pause } from '../../src/async/clock';
import { created, newEvent, updated } from '../projecting/harness';
import { freePort } from '../support/free-port';
import { freshFolder } from '../support/folders';
import { ask, type ApiResponse } from '../support/http';
import { openAppIn } from '../support/profile';
import { releaseWith } from '../support/release';
import { commandProcess, serviceProcess, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

/** The nth later release of the program, which projects tenants differently under another version. */
const release = (n: number): string =>
  releaseWith(`1.${n}.0`, [
    {
      file: 'projections/tenants.js',
      replaced: [
        [`version: ${tenants.version},`, `version: ${tenants.version + n},`],
        ['name: event.data.name', `name: event.data.name + ' in ${n}'`],
      ],
    },
  ]);

/** A server that shares the cores with the event store starts more slowly. */
const GAP_MS = process.env['TEST_EVENTSTORE_URL'] === undefined ? 2_000 : 5_000;

describe('an upgrade with a changed projection', () => {
  let env: Record<string, string>;
  let url: string;
  let key: string;
  let running: Service;

  const read = (): Promise<ApiResponse> => ask(`${url}/tenants/self`, { key });
  const rename = async (name: string): Promise<void> => {
    const { status } = await ask(`${url}/tenants/self`, { method: 'PUT', key, body: { name } });
    expect(status).toBe(200);
  };

  /** Starts a program while a client keeps asking; returns the responses up to the first successful one. */
  const startAsked = async (main?: string): Promise<{ answers: readonly ApiResponse[]; gapMs: number }> => {
    const answers: ApiResponse[] = [];
    let firstAt = 0;
    const starting = serviceProcess(env, main);
    await until(async () => {
      const response = await read().catch(() => undefined);
      if (response === undefined) return false;
      if (firstAt === 0) firstAt = performance.now();
      answers.push(response);
      return response.status === 200;
    }, 25_000);
    const gapMs = performance.now() - firstAt;
    running = await starting;
    return { answers, gapMs };
  };

  /** All that a client may see in the meantime is "not yet": never an empty or stale answer. */
  const expectOnlyStarting = (answers: readonly ApiResponse[]): void => {
    for (const { status, headers, json } of answers.slice(0, -1)) {
      expect([status, json.code]).toEqual([503, 'starting']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
  };

  beforeAll(async () => {
    env = { DATA_DIR: freshFolder(), PORT: await freePort() };
    running = await startService(env);
    ({ url, key } = running);
    const app = await openAppIn(env['DATA_DIR'] as string);
    for (let i = 0; i < 3; i++) {
      const history = [created(), ...Array.from({ length: 1_000 }, (_, n) => updated(`${n}`))];
      await app.log.append(app.streams.tenant(randomUUID()), history.map(newEvent), 'no_stream', 10_000);
    }
    await app.close();
    await rename('Acme');
  });

  it('without a rebuild makes reads wait, or answers 503, until the read models are built: never with an empty answer', async () => {
    await running.stop();
    const { answers } = await startAsked(release(1));
    expectOnlyStarting(answers);
    expect(answers.at(-1)?.json.name).toBe('Acme in 1');
    await rename('Acme & Sons');
    expect((await read()).json.name).toBe('Acme & Sons in 1');
  });

  it('can be rolled back to the older program, which catches up', async () => {
    await running.stop();
    const { answers } = await startAsked();
    expectOnlyStarting(answers);
    expect(answers.at(-1)?.json.name).toBe('Acme & Sons');
  });

  it('after a rebuild beside the old server has no downtime, and neither has the rollback', async () => {
    const main = release(2);
    const rebuilding = commandProcess(['projections', 'rebuild', '--all', '--json'], env, main);
    let done = false;
    const finished = rebuilding.finally(() => (done = true));
    let writes = 0;
    for (; !done; writes++) {
      await rename(`Write ${writes}`);
      expect((await read()).json.name).toBe(`Write ${writes}`);
      await pause(5);
    }
    const { code, stdout, stderr } = await finished;
    expect([code, stderr.replace(/^The read models do not show it yet.*\n/, '')]).toEqual([0, '']);
    const rows = JSON.parse(stdout) as {
      projection: string;
      generation: string;
      differences: number | null;
    }[];
    expect(rows.map(({ projection, differences }) => [projection, differences])).toEqual([
      ['tenants', null],
      ['applications', 0],
      ['logs', 0],
      ['usage', 0],
    ]);
    expect(rows[0]?.generation).toContain(`tenants_v${tenants.version + 2}_`);
    await rename('Last of the old');
    expect((await read()).json.name).toBe('Last of the old');

    await running.stop();
    const { answers, gapMs } = await startAsked(main);
    expectOnlyStarting(answers);
    expect(answers.at(-1)?.json.name).toBe('Last of the old in 2');
    console.log(
      `after the restart: ${answers.length - 1} answers 503 in ${Math.round(gapMs)} ms; ${writes} writes`,
    );
    expect(gapMs).toBeLessThan(GAP_MS);
    await rename('First of the new');
    const verified = await commandProcess(['projections', 'verify', '--json'], env, main);
    expect(verified.code).toBe(0);

    await running.stop();
    const back = await startAsked();
    expectOnlyStarting(back.answers);
    expect(back.answers.at(-1)?.json.name).toBe('First of the new');
    expect(back.gapMs).toBeLessThan(GAP_MS);
    await running.stop();
  });
});
