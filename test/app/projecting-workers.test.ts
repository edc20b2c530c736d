import { randomUUID } from 'node:crypto';
import { projections } from '../../projections/projections';
import { findTenant } from '../../projections/tenants';
import { openApp } from '../../src/app/app';
import { readConfiguration } from '../../src/configuration';
import { projectingWorkers } from '../../src/app/projecting-workers';
import { freshFolder } from '../support/folders';
import { slowReadModel, stuckReadModel } from '../support/stuck';
import { until } from '../support/waiting';

const LONG = 20_000;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

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

describe('the projecting workers', () => {
  it('start when they can, report what is wrong until then, and project at once what another thread appends', async () => {
    const configuration = readConfiguration({ DATA_DIR: freshFolder() });
    const warnings: string[] = [];
    const onError = (what: string): void => void warnings.push(what);
    const moves: string[] = [];
    closers.push(projectingWorkers(configuration, onError)((generation) => void moves.push(generation)));
    await until(() => warnings.length >= 2);
    expect(warnings[0]).toBe('Projecting cannot begin and is tried again.');

    const app = await openApp(configuration, onError);
    closers.push(app.close);
    const tenantId = randomUUID();
    const { position } = await app.log.append(app.streams.tenant(tenantId), [tenantCreated], 'no_stream');
    // False until the workers have created the read models.
    await until(() => app.projecting.refresh());
    expect(await app.projecting.reached(position, LONG)).toBe(true);
    await until(() => new Set(moves).size === projections.length);
    expect(await findTenant(app.projecting.reader('tenants'), tenantId)).toMatchObject({ name: 'A tenant' });
  });

  it.each([
    ['slow', slowReadModel],
    ['failing', stuckReadModel],
  ])(
    'show Applications and keys at once even if the log rows are %s',
    async (_, hinder) => {
      const configuration = readConfiguration({ DATA_DIR: freshFolder() });
      const workers = projectingWorkers(configuration, () => undefined);
      const app = await openApp(configuration, () => undefined, { workers });
      closers.push(app.close);
      await app.projecting.start();
      const [tenantId, other] = [randomUUID(), randomUUID()];
      const { position: first } = await app.log.append(
        app.streams.tenant(tenantId),
        [tenantCreated],
        'no_stream',
      );
      expect(await app.projecting.reached(first, LONG)).toBe(true);
      const { close } = hinder(configuration.DATA_DIR, 'logs');
      closers.push(async () => close());
      const positionOf = async (projection: string) =>
        (await app.projecting.reader(projection).applied()) ?? '';
      const lags = [];
      for (let revision = 0; revision < 10; revision += 1) {
        const expected = revision === 0 ? 'no_stream' : 100 * revision - 1;
        await app.log.append(app.streams.activity(other), factsOf(100), expected);
        const event = { ...tenantCreated, id: randomUUID() };
        const { position } = await app.log.append(app.streams.tenant(tenantId), [event], revision);
        const startedAt = performance.now();
        await until(async () => (await positionOf('applications')) >= position);
        lags.push(performance.now() - startedAt);
        expect((await positionOf('logs')) < position).toBe(true);
      }
      const [longest = 0] = lags.toSorted((a, b) => b - a);
      console.log(`shown after ${lags.map(Math.round).join(', ')} ms`);
      expect(longest).toBeLessThan(500);
    },
    60_000,
  );

  it('report progress to the main thread, so that a write does not wait for a poll of the file', async () => {
    const configuration = readConfiguration({ DATA_DIR: freshFolder() });
    const onError = (what: string, error: unknown): never => {
      throw new Error(what, { cause: error });
    };
    const app = await openApp(configuration, onError, { workers: projectingWorkers(configuration, onError) });
    closers.push(app.close);
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
