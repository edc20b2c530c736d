import { randomUUID } from 'node:crypto';
import { projections } from '../projections/projections';
import { findTenant } from '../projections/tenants';
import { openApp } from '../src/app';
import { readConfiguration } from '../src/configuration';
import { projectingThread } from '../src/projecting-thread';
import { freshFolder } from './support/folders';
import { until } from './support/waiting';

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

describe('the projecting thread', () => {
  it('begins when it can, says what is wrong until then, and projects at once what another thread appends', async () => {
    const configuration = readConfiguration({ DATA_DIR: freshFolder() });
    const troubles: string[] = [];
    const onTrouble = (what: string): void => void troubles.push(what);
    const moves: string[] = [];
    closers.push(projectingThread(configuration, onTrouble)((generation) => void moves.push(generation)));
    await until(() => troubles.length >= 2);
    expect(troubles[0]).toBe('Projecting cannot begin and is tried again.');

    const app = await openApp(configuration, onTrouble);
    closers.push(app.close);
    const tenantId = randomUUID();
    const { position } = await app.log.append(app.streams.tenant(tenantId), [tenantCreated], 'no_stream');
    expect(await app.projecting.reached(position, LONG)).toBe(true);
    await until(() => new Set(moves).size === projections.length);
    expect(await findTenant(app.projecting.reader('tenants'), tenantId)).toMatchObject({ name: 'A tenant' });
  }, 30_000);

  it('tells the thread that asks what has moved: a write does not wait for a look at the file', async () => {
    const configuration = readConfiguration({ DATA_DIR: freshFolder() });
    const onTrouble = (what: string, error: unknown): never => {
      throw new Error(what, { cause: error });
    };
    const app = await openApp(configuration, onTrouble, projectingThread(configuration, onTrouble));
    closers.push(app.close);
    await app.projecting.start();
    const tenantId = randomUUID();
    const append = async (expected: number | 'no_stream') => {
      const event = { ...tenantCreated, id: randomUUID() };
      const { position } = await app.log.append(app.streams.activity(tenantId), [event], expected);
      const began = performance.now();
      expect(await app.projecting.reached(position, LONG)).toBe(true);
      return performance.now() - began;
    };
    await append('no_stream');
    const waits = [];
    for (let revision = 0; revision < 20; revision += 1) waits.push(await append(revision));
    expect(waits.toSorted((a, b) => a - b)[8]).toBeLessThan(15);
  }, 30_000);
});
