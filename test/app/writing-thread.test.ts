import { randomUUID } from 'node:crypto';
import { projections } from '../../projections/projections';
import { findTenant } from '../../projections/tenants';
import { openApp, type App } from '../../src/app/app';
import { pause } from '../../src/async/clock';
import { readConfiguration, type Configuration } from '../../src/configuration';
import { writingThread } from '../../src/app/writing-thread';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { stuckReadModel } from '../support/stuck';
import { until } from '../support/waiting';

const LONG = 20_000;
/** How many facts nobody has projected yet. */
const BACKLOG = Number(process.env['BACKLOG'] ?? 10_000);

const tenantCreated = {
  id: randomUUID(),
  type: 'TenantCreated',
  data: {
    name: 'A tenant',
    ownerId: randomUUID(),
    settings: { fingerprintTokens: false, deduplicateTokens: false },
    includedMonthlyActiveTokens: 0,
  },
  metadata: { version: 1 },
};

const factsOf = (count: number) =>
  Array.from({ length: count }, () => ({
    id: randomUUID(),
    type: 'TokenRead',
    data: { entityId: randomUUID() },
    metadata: { version: 1 },
  }));

const openWriting = async (configuration: Configuration, onError: (what: string, error: unknown) => void) => {
  const app = await openApp(configuration, onError, { writing: writingThread(configuration, { onError }) });
  closeAfterwards(app.close);
  return app;
};

const positionIn = async (app: App, projection: string): Promise<string> =>
  (await app.projecting.reader(projection).applied()) ?? '';

const msUntil = async (isTrue: () => Promise<boolean>): Promise<number> => {
  const began = performance.now();
  await until(isTrue);
  return performance.now() - began;
};

/** A percentile of the time that appends took. */
const at = (all: readonly { readonly appended: number }[], part: number): number => {
  const sorted = all.map(({ appended }) => appended).toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN);
};

/** How late timers of this thread are at most, on a machine that others use too. */
const lateness = (): (() => number) => {
  let [last, most] = [performance.now(), 0];
  const timer = setInterval(() => {
    most = Math.max(most, performance.now() - last - 5);
    last = performance.now();
  }, 5);
  return () => {
    clearInterval(timer);
    return Math.round(most);
  };
};

describe('the writing thread', () => {
  it('starts when it can, reports what is wrong until then, and projects at once what another thread appends', async () => {
    const configuration = readConfiguration({ DATA_DIR: freshFolder() });
    const warnings: string[] = [];
    const onError = (what: string): void => void warnings.push(what);
    const moves: string[] = [];
    const thread = writingThread(configuration, { onError });
    closeAfterwards(thread.close);
    thread.project((generation) => void moves.push(generation));
    await until(() => warnings.length >= 2);
    expect(warnings[0]).toBe('Projecting cannot begin and is tried again.');

    const app = await openApp(configuration, onError);
    closeAfterwards(app.close);
    const tenantId = randomUUID();
    const { position } = await app.log.append(app.streams.tenant(tenantId), [tenantCreated], 'no_stream');
    // False until the thread has created the read models.
    await until(() => app.projecting.refresh());
    expect(await app.projecting.reached(position, LONG)).toBe(true);
    await until(() => new Set(moves).size === projections.length);
    expect(await findTenant(app.projecting.reader('tenants'), tenantId)).toMatchObject({ name: 'A tenant' });
  });

  it('shows Applications and keys at once even if the log rows cannot be written', async () => {
    const configuration = readConfiguration({ DATA_DIR: freshFolder() });
    const app = await openWriting(configuration, () => undefined);
    await app.projecting.start();
    const [tenantId, other] = [randomUUID(), randomUUID()];
    const created = await app.log.append(app.streams.tenant(tenantId), [tenantCreated], 'no_stream');
    expect(await app.projecting.reached(created.position, LONG)).toBe(true);
    const { close } = stuckReadModel(configuration.DATA_DIR, 'logs');
    closeAfterwards(async () => close());
    const lags = [];
    for (let revision = 0; revision < 10; revision += 1) {
      const expected = revision === 0 ? 'no_stream' : 100 * revision - 1;
      await app.log.append(app.streams.activity(other), factsOf(100), expected);
      const event = { ...tenantCreated, id: randomUUID() };
      const { position } = await app.log.append(app.streams.tenant(tenantId), [event], revision);
      lags.push(await msUntil(async () => (await positionIn(app, 'applications')) >= position));
      expect((await positionIn(app, 'logs')) < position).toBe(true);
    }
    expect(Math.max(...lags)).toBeLessThan(500);
  });

  it('appends, and shows Applications, without waiting for a backlog of facts', async () => {
    const configuration = readConfiguration({ DATA_DIR: freshFolder() });
    const app = await openWriting(configuration, () => undefined);
    const [tenantId, other] = [randomUUID(), randomUUID()];
    await app.log.append(app.streams.tenant(tenantId), [tenantCreated], 'no_stream');
    let revision = 0;
    /** Appends one event. Returns how long that took, and until it was shown by `applications`. */
    const measure = async () => {
      const began = performance.now();
      const event = { ...tenantCreated, id: randomUUID() };
      const { position } = await app.log.append(app.streams.tenant(tenantId), [event], revision++);
      const appended = performance.now() - began;
      const shown = await msUntil(async () => (await positionIn(app, 'applications')) >= position);
      return { appended, shown, position };
    };
    for (let facts = 0; facts < BACKLOG; facts += 1_000) {
      const expected = facts === 0 ? 'no_stream' : facts - 1;
      await app.log.append(app.streams.activity(other), factsOf(1_000), expected, LONG);
    }
    await app.projecting.start();
    await until(async () => (await positionIn(app, 'logs')) !== '');
    const late = lateness();
    const during = [];
    for (let last = ''; during.length < 20 || (await positionIn(app, 'logs')) < last;) {
      const { position, ...measured } = await measure();
      during.push(measured);
      last = position;
      await pause(20);
    }
    const noise = late();
    const [p99, max] = [at(during, 0.99), at(during, 1)];
    const shown = Math.round(Math.max(...during.map((measured) => measured.shown)));
    console.log(
      `${during.length} appends: p99 ${p99}, max ${max}, shown after ${shown} ms; this thread was ${noise} ms late`,
    );
    expect(p99).toBeLessThan(20 + 3 * noise);
    expect(max).toBeLessThan(100 + 3 * noise);
    expect(shown).toBeLessThan(1_000 + 10 * noise);
  }, 120_000);

  it('reports progress to the main thread, so that a write does not wait for a poll of the file', async () => {
    const configuration = readConfiguration({ DATA_DIR: freshFolder() });
    const onError = (what: string, error: unknown): never => {
      throw new Error(what, { cause: error });
    };
    const app = await openWriting(configuration, onError);
    await app.projecting.start();
    const tenantId = randomUUID();
    const append = async (expected: number | 'no_stream') => {
      const event = { ...tenantCreated, id: randomUUID() };
      const { position } = await app.log.append(app.streams.activity(tenantId), [event], expected);
      const startedAt = performance.now();
      expect(await app.projecting.reached(position, LONG)).toBe(true);
      return performance.now() - startedAt;
    };
    await append('no_stream');
    const waits = [];
    for (let revision = 0; revision < 20; revision += 1) waits.push(await append(revision));
    expect(waits.toSorted((a, b) => a - b)[8]).toBeLessThan(15);
  });
});
