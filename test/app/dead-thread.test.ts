import workers, { type Worker } from 'node:worker_threads';
import { freshFolder } from '../support/folders';
import { EMBEDDED } from '../support/profile';
import { startCommand } from '../support/service';

describe('a server whose writing thread died', () => {
  it('says why and ends with exit code 1', async () => {
    const started: Worker[] = [];
    const Real = workers.Worker;
    jest.spyOn(workers, 'Worker').mockImplementation((...all) => {
      started.push(new Real(...all));
      return started.at(-1)!;
    });
    const env = { DATA_DIR: freshFolder(), PORT: '0', OPS_PORT: '0', DEMO: 'true', ...EMBEDDED };
    const { done, exited, stderr, signal } = startCommand(['serve'], env);
    expect(await done).toBe(0);
    await started[0]!.terminate();
    expect(await exited).toBe(1);
    expect(stderr()).toMatch(/"level":60.*"exit_code":1.*A thread of the service died: It exited\./);
    signal('SIGTERM'); // Closes what the real exit would have closed.
  });
});
