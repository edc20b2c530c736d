import { EventEmitter } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { readConfiguration } from '../../src/configuration';
import { rebuildInWorkers, spread, verifyInWorkers } from '../../src/app/replay-workers';
import { freshFolder } from '../support/folders';

const named = (...names: string[]) => projections.filter(({ name }) => names.includes(name));

const quiet = { onError: () => undefined, onStep: () => undefined };
const options = { acceptDifferences: true, acceptParked: false };

/** The module, with workers that do only what is given here. */
const withWorkers = (run: (worker: EventEmitter) => void): typeof import('../../src/app/replay-workers') => {
  jest.resetModules();
  jest.doMock('node:worker_threads', () => ({
    Worker: function Worker() {
      const worker = new EventEmitter();
      setImmediate(() => run(worker));
      return worker;
    },
  }));
  return require('../../src/app/replay-workers') as typeof import('../../src/app/replay-workers');
};

describe('the workers of a replay', () => {
  afterEach(() => {
    jest.dontMock('node:worker_threads');
    jest.resetModules();
  });

  it('report an outcome to every caller when they die', async () => {
    const workers = withWorkers((worker) => {
      worker.emit('message', { type: 'done', projection: 'logs', outcome: 'rebuilt' });
      worker.emit('error', new Error('out of memory'));
      worker.emit('exit', 1);
    });
    const rebuilt = await workers.rebuildInWorkers(
      readConfiguration({}),
      named('logs', 'tenants'),
      options,
      quiet,
    );
    expect(rebuilt).toEqual([
      expect.objectContaining({
        status: 'rejected',
        reason: expect.objectContaining({ message: 'The replaying worker died: out of memory' }),
      }),
      { status: 'fulfilled', value: 'rebuilt' },
    ]);
  });

  it('keep finished work even if cleaning up failed, and say where a bug is', async () => {
    const workers = withWorkers((worker) => {
      worker.emit('message', { type: 'done', projection: 'logs', outcome: 'rebuilt' });
      for (const projection of ['logs', 'tenants'])
        worker.emit('message', { type: 'failed', projection, message: 'no', stack: 'here' });
      worker.emit('exit', 0);
    });
    const [tenants, logs] = await workers.rebuildInWorkers(
      readConfiguration({}),
      named('logs', 'tenants'),
      options,
      quiet,
    );
    expect(logs).toEqual({ status: 'fulfilled', value: 'rebuilt' });
    expect(tenants).toMatchObject({ status: 'rejected', reason: { message: 'no', stack: 'here' } });
    expect(tenants).not.toHaveProperty('reason.code');
  });

  it('report every failed verification, not only the first', async () => {
    const workers = withWorkers((worker) => {
      for (const projection of ['logs', 'tenants'])
        worker.emit('message', { type: 'failed', projection, code: 'failed', message: `no ${projection}` });
      worker.emit('exit', 0);
    });
    const reported: unknown[] = [];
    const verifying = workers.verifyInWorkers(readConfiguration({}), named('logs', 'tenants'), undefined, {
      onError: (what, error) => reported.push([what, (error as Error).message]),
    });
    await expect(verifying).rejects.toThrow('no tenants');
    expect(reported).toEqual([['logs was not verified.', 'no logs']]);
  });

  it('share the work: every projection of tenant activity gets its own worker', () => {
    expect(spread(projections, 8)).toEqual([['logs'], ['usage', 'tenants', 'applications']]);
    expect(spread(projections, 1)).toHaveLength(1);
    expect(spread(named('tenants', 'applications'), 8)).toEqual([['tenants', 'applications']]);
  });

  it('report an outcome to every caller when they cannot even start', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'events.db'), 'This is no database.');
    const configuration = readConfiguration({ DATA_DIR: folder });
    const outcomes = await rebuildInWorkers(configuration, projections, options, quiet);
    expect(outcomes).toHaveLength(projections.length);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { message: expect.stringMatching(/database/) },
      });
    const others = { ...quiet, onProgress: () => undefined, onDifference: () => undefined };
    await expect(verifyInWorkers(configuration, projections, undefined, others)).rejects.toThrow(/database/);
  });
});
