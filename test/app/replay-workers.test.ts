import { EventEmitter } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { readConfiguration } from '../../src/configuration';
import { rebuildInThreads, spread, verifyInThreads } from '../../src/app/replay-workers';
import { freshFolder } from '../support/folders';

const named = (...names: string[]) => projections.filter(({ name }) => names.includes(name));

const quiet = { onTrouble: () => undefined, onStep: () => undefined };
const options = { ifEqual: false, acceptParked: false };

/** The module with threads that only do what is said here. */
const withThreads = (life: (thread: EventEmitter) => void): typeof import('../../src/app/replay-workers') => {
  jest.resetModules();
  jest.doMock('node:worker_threads', () => ({
    Worker: function Worker() {
      const thread = new EventEmitter();
      setImmediate(() => life(thread));
      return thread;
    },
  }));
  return require('../../src/app/replay-workers') as typeof import('../../src/app/replay-workers');
};

describe('the threads of a replay', () => {
  afterEach(() => {
    jest.dontMock('node:worker_threads');
    jest.resetModules();
  });

  it('leave nobody without an outcome when they die', async () => {
    const threads = withThreads((thread) => {
      thread.emit('message', { tell: 'done', projection: 'logs', outcome: 'rebuilt' });
      thread.emit('error', new Error('out of memory'));
      thread.emit('exit', 1);
    });
    const rebuilt = await threads.rebuildInThreads(
      readConfiguration({}),
      named('logs', 'tenants'),
      options,
      quiet,
    );
    expect(rebuilt).toEqual([
      expect.objectContaining({
        status: 'rejected',
        reason: expect.objectContaining({ message: 'The replaying thread died: out of memory' }),
      }),
      { status: 'fulfilled', value: 'rebuilt' },
    ]);
  });

  it('keep what is done, though tidying up failed, and say where a mistake was made', async () => {
    const threads = withThreads((thread) => {
      thread.emit('message', { tell: 'done', projection: 'logs', outcome: 'rebuilt' });
      for (const projection of ['logs', 'tenants'])
        thread.emit('message', { tell: 'failed', projection, message: 'no', stack: 'here' });
      thread.emit('exit', 0);
    });
    const [tenants, logs] = await threads.rebuildInThreads(
      readConfiguration({}),
      named('logs', 'tenants'),
      options,
      quiet,
    );
    expect(logs).toEqual({ status: 'fulfilled', value: 'rebuilt' });
    expect(tenants).toMatchObject({ status: 'rejected', reason: { message: 'no', stack: 'here' } });
    expect(tenants).not.toHaveProperty('reason.code');
  });

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
    const outcomes = await rebuildInThreads(configuration, projections, options, quiet);
    expect(outcomes).toHaveLength(projections.length);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { message: expect.stringMatching(/database/) },
      });
    const others = { ...quiet, onProgress: () => undefined, onDifference: () => undefined };
    await expect(verifyInThreads(configuration, projections, undefined, others)).rejects.toThrow(/database/);
  });
});
