import { projections } from '../../projections/projections';
import { compose, change, type Projector } from '../../projections/projector';
import type { Recorded } from '../../src/domain/events';

const one = (name: string, version = 1): Projector => ({
  name,
  version,
  collections: [{ name: `${name}_rows`, indexes: {} }],
  on: { TenantDeleted: (event) => [change(`${name}_rows`, event.id, () => ({}))] },
  onSetAside: ({ id }) => [change(`${name}_rows`, id, () => ({}))],
});

describe('composed projectors', () => {
  it('have one version, which is that of all names and versions', () => {
    const versions = [[one('a'), one('b')], [one('a'), one('b', 2)], [one('a'), one('c')], [one('a')]].map(
      (projectors) => compose(projectors).version,
    );
    expect(new Set(versions).size).toBe(4);
    expect(compose([one('a'), one('b')]).version).toBe(versions[0]);
    expect(versions[0]).toBe('3-a1-b1');
  });

  it('make the changes of all for an event, in order', () => {
    const { changesOf, onSetAside } = compose([one('b'), one('a')]);
    const event = { type: 'TenantDeleted', id: 'x' } as Recorded;
    const leaf = () => Buffer.alloc(32);
    const bad = { id: 'x', position: '1', recordedAt: '', type: 'Unknown', kind: 'tenant', leaf } as const;
    for (const changes of [changesOf(event, leaf), onSetAside(bad)])
      expect(changes.flatMap(({ touches }) => touches.map(({ collection }) => collection))).toEqual([
        'b_rows',
        'a_rows',
      ]);
    expect(changesOf({ ...event, type: 'TenantCreated' } as Recorded, leaf)).toEqual([]);
  });

  it('have collections of different names', () => {
    const names = compose(projections).collections.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(expect.arrayContaining(['tenants', 'applications', 'log_rows', 'usage_tokens']));
  });
});
