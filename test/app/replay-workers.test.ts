import { EventEmitter } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projections } from '../../projections/projections';
import { readConfiguration } from '../../src/configuration';
import { rebuildInWorkers, spread, verifyInWorkers } from '../../src/app/replay-workers';
import { freshFolder } from '../support/folders';
import { fillLargeLog } from '../support/large-log';

const configurationWithLog = async () =>
  readConfiguration({ DATA_DIR: await fillLargeLog(freshFolder(), 10) });

const named = (...names: string[]) => projections.filter(({ name }) => names.includes(name));

const quiet = { onError: () => undefined, onStep: () => undefined };
const options = { acceptDifferences: true };

interface Sent {
  readonly id: number;
  readonly request: { readonly projection: string };
}

/** The module, with workers that do only what is given here. */
const withWorkers = (
  run: (worker: EventEmitter, idOf: (projection: string) => number) => void,
): typeof import('../../src/app/replay-workers') => {
  jest.resetModules();
  jest.doMock('node:worker_threads', () => ({
    Worker: function Worker() {
      const worker = new EventEmitter();
      const postMessage = (message: readonly Sent[] | 'close'): void => {
        if (message === 'close') return void setImmediate(() => worker.emit('exit', 0));
        const idOf = (projection: string): number =>
          message.find(({ request }) => request.projection === projection)?.id ?? 0;
        setImmediate(() => run(worker, idOf));
      };
      return Object.assign(worker, { postMessage });
    },
  }));
  return require('../../src/app/replay-workers') as typeof import('../../src/app/replay-workers');
};

const answering = (worker: EventEmitter, ...answers: readonly unknown[]): unknown =>
  worker.emit('message', { answers, reports: [] });

describe('the workers of a replay', () => {
  afterEach(() => {
    jest.dontMock('node:worker_threads');
    jest.resetModules();
  });

  it('report an outcome to every caller when they die', async () => {
    const workers = withWorkers((worker, idOf) => {
      answering(worker, { id: idOf('logs'), value: 'rebuilt' });
      worker.emit('error', new Error('out of memory'));
      worker.emit('exit', 1);
    });
    const rebuilt = await workers.rebuildInWorkers(
      await configurationWithLog(),
      named('logs', 'tenants'),
      options,
      quiet,
    );
    expect(rebuilt).toEqual([
      expect.objectContaining({
        status: 'rejected',
        reason: expect.objectContaining({ message: 'The thread died: out of memory' }),
      }),
      { status: 'fulfilled', value: 'rebuilt' },
    ]);
  });

  it('say where a bug is', async () => {
    const workers = withWorkers((worker, idOf) => {
      const failure = { message: 'no', stack: 'here' };
      answering(worker, { id: idOf('logs'), value: 'rebuilt' }, { id: idOf('tenants'), failure });
    });
    const [tenants, logs] = await workers.rebuildInWorkers(
      await configurationWithLog(),
      named('logs', 'tenants'),
      options,
      quiet,
    );
    expect(logs).toEqual({ status: 'fulfilled', value: 'rebuilt' });
    expect(tenants).toMatchObject({ status: 'rejected', reason: { message: 'no', stack: 'here' } });
    expect(tenants).not.toHaveProperty('reason.code');
  });

  it('report every failed verification, not only the first', async () => {
    const workers = withWorkers((worker, idOf) => {
      for (const projection of ['logs', 'tenants'])
        answering(worker, { id: idOf(projection), failure: { code: 'x', message: `no ${projection}` } });
    });
    const reported: unknown[] = [];
    const verifying = workers.verifyInWorkers(
      readConfiguration({ DATA_DIR: freshFolder() }),
      named('logs', 'tenants'),
      undefined,
      {
        onError: (what, error) => reported.push([what, (error as Error).message]),
      },
    );
    await expect(verifying).rejects.toThrow('no tenants');
    expect(reported).toEqual([['logs was not verified.', 'no logs']]);
  });

  it('share the work: every projection of tenant activity gets its own worker', () => {
    expect(spread(projections, 8)).toEqual([['logs'], ['usage', 'tenants', 'applications']]);
    expect(spread(projections, 1)).toHaveLength(1);
    expect(spread(named('tenants', 'applications'), 8)).toEqual([['tenants', 'applications']]);
  });

  it('are not started if the log cannot be read', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'events.db'), 'This is no database.');
    const configuration = readConfiguration({ DATA_DIR: folder });
    await expect(rebuildInWorkers(configuration, projections, options, quiet)).rejects.toThrow(/database/);
    const others = { ...quiet, onProgress: () => undefined, onDifference: () => undefined };
    await expect(verifyInWorkers(configuration, projections, undefined, others)).rejects.toThrow(/database/);
  });
});
