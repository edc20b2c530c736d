import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projections } from '../projections/projections';
import { readConfiguration } from '../src/configuration';
import { rebuildInThreads, spread, verifyInThreads } from '../src/replay-threads';
import { freshFolder } from './support/folders';

const named = (...names: string[]) => projections.filter(({ name }) => names.includes(name));

describe('the threads of a replay', () => {
  it('share the work: whoever follows the activity of tenants has one to itself', () => {
    expect(spread(projections, 8).map((names) => names.toSorted())).toEqual([
      ['logs', 'tenants'],
      ['applications', 'usage'],
    ]);
    expect(spread(projections, 1)).toHaveLength(1);
    expect(spread(named('tenants', 'applications'), 8)).toEqual([['tenants', 'applications']]);
  });

  it('leave nobody without an outcome when they cannot even begin', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'events.db'), 'This is no database.');
    const configuration = readConfiguration({ DATA_DIR: folder });
    const hear = { onTrouble: () => undefined, onStep: () => undefined };
    const options = { ifEqual: false, acceptParked: false };
    const outcomes = await rebuildInThreads(configuration, projections, options, hear);
    expect(outcomes).toHaveLength(projections.length);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { message: expect.stringMatching(/database/) },
      });
    const others = { ...hear, onProgress: () => undefined, onDifference: () => undefined };
    await expect(verifyInThreads(configuration, projections, undefined, others)).rejects.toThrow(/database/);
  });
});
