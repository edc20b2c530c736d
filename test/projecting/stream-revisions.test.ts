import { randomUUID } from 'node:crypto';
import { projections } from '../../projections/projections';
import { lastRevision } from '../../src/projecting/stream-revisions';
import { replayHarness } from './replay';
import { created, openProcess, openReadModels, streams, updated } from './harness';

describe('the revisions in a read model', () => {
  it('cover each stream that it follows', async () => {
    const { log, folder } = await replayHarness();
    const [one, two, bad] = [randomUUID(), randomUUID(), randomUUID()];
    await log.record(streams.tenant(one), created(), updated('a'), updated('b'));
    await log.record(streams.activity(one), { type: 'TokenRead', data: { entityId: 'x' } });
    await log.record(streams.tenant(bad), created());
    log.plant(streams.tenant(bad), { type: 'TenantPainted', data: '{}' });
    await log.record(streams.tenant(bad), updated('waits'));
    const { position } = await log.record(streams.tenant(two), created());
    const server = await openProcess(log, await openReadModels(folder), [...projections]);
    expect(await server.catchUp(position, 10_000)).toBe(true);
    const revisions = async (projection: string, tenantId: string) => {
      const reader = server.reader(projection);
      return [
        await lastRevision(reader, tenantId, 'tenant'),
        await lastRevision(reader, tenantId, 'activity'),
      ];
    };
    for (const projection of ['logs', 'usage']) expect(await revisions(projection, one)).toEqual([2, 0]);
    for (const projection of ['tenants', 'applications'])
      expect(await revisions(projection, one)).toEqual([2, -1]);
    for (const { name } of projections) {
      expect(await revisions(name, two)).toEqual([0, -1]);
      expect(await revisions(name, bad)).toEqual([0, -1]);
      expect(await revisions(name, randomUUID())).toEqual([-1, -1]);
    }
  });
});
