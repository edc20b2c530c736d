import { join } from 'node:path';
import { yieldToEventLoop } from '../../src/async/clock';
import { startThread, type Thread } from '../../src/async/thread';
import { refusedWith, until } from '../support/waiting';

describe('a thread', () => {
  const LONG = 10_000;
  let thread: Thread;
  let naps: Int32Array;
  let busy: Int32Array;
  let reports: unknown[];
  let deaths: string[];
  const file = join(__dirname, '..', 'support', 'mortal-thread.js');
  beforeEach(() => {
    naps = new Int32Array(new SharedArrayBuffer(4));
    busy = new Int32Array(new SharedArrayBuffer(4));
    reports = [];
    deaths = [];
    thread = startThread(
      file,
      { naps, busy },
      {
        onReport: (report) => void reports.push(report),
        onDeath: (error) => void deaths.push(error.message),
      },
    );
  });
  afterEach(() => thread.close());

  it('answers each request with its own result', async () => {
    const asked = Array.from({ length: 600 }, (_, echo) => echo);
    expect(await Promise.all(asked.map((echo) => thread.call({ echo }, LONG)))).toEqual(asked);
  });

  it('passes on a refusal with its code and details', async () => {
    await expect(thread.call({ refuse: 'stream_changed' }, LONG)).rejects.toMatchObject({
      code: 'stream_changed',
      more: { why: 'told to' },
    });
  });

  it('fails a request that throws, and no other of its group', async () => {
    const asked = [thread.call('throw', LONG), thread.call({ echo: 1 }, LONG)];
    await expect(asked[0]).rejects.toThrow('it fails');
    expect(await asked[1]).toBe(1);
  });

  it('does not let the other requests of a group wait for one that takes its time', async () => {
    const answered: unknown[] = [];
    const asked = [{ laterMs: 300 }, { echo: 'at once' }].map((request) => thread.call(request, LONG));
    for (const one of asked) void one.then((answer) => answered.push(answer));
    await asked[1];
    expect(await thread.call({ echo: 'after it' }, LONG)).toBe('after it');
    await thread.close();
    expect(answered).toEqual(['at once', 'later']);
  });

  it('reports no_answer when the time is up, and does not start what is overdue', async () => {
    let isRested = false;
    const slow = thread.call({ busyMs: 1_000 }, LONG).finally(() => (isRested = true));
    await until(() => Atomics.load(naps, 0) === 1);
    expect(await refusedWith(thread.call({ echo: 1 }, 50))).toBe('no_answer');
    expect(isRested).toBe(false);
    expect(await slow).toBe('rested');
    expect(await thread.call('count', LONG)).toBe(2);
  });

  it('is not started again after it died, and reports no_answer to those who waited and to all others', async () => {
    await thread.call({ echo: 'it is up' }, LONG);
    const codes = await Promise.all(
      [thread.call({ echo: 1 }, LONG), thread.call('die', LONG), thread.call({ echo: 2 }, LONG)].map(
        refusedWith,
      ),
    );
    expect(codes.slice(1)).toEqual(['no_answer', 'no_answer']);
    expect(deaths).toEqual(['It exited.']);
    expect(await refusedWith(thread.call({ echo: 'again' }, 100 * LONG))).toBe('no_answer');
  });

  it('says what it died of', async () => {
    expect(await refusedWith(thread.call('throwLater', LONG))).toBe('no_answer');
    expect(deaths).toEqual(['it was too much']);
  });

  it('tries again what is busy, and meanwhile answers the rest', async () => {
    Atomics.store(busy, 0, 1_000_000);
    const retried = thread.call('busy', LONG);
    await yieldToEventLoop();
    expect(await thread.call({ echo: 1 }, LONG)).toBe(1);
    Atomics.store(busy, 0, 0);
    expect(await retried).toBe('free');
    Atomics.store(busy, 0, 1_000_000);
    expect(['expired', 'no_answer']).toContain(await refusedWith(thread.call('busy', 200)));
  });

  it('reports before it answers', async () => {
    await thread.call({ report: 'a' }, LONG);
    expect(reports).toEqual(['a']);
  });

  it('finishes pending requests before it closes, and accepts none afterwards', async () => {
    const asked = [thread.call({ busyMs: 50 }, LONG), thread.call({ echo: 1 }, LONG)];
    await thread.close();
    expect(await Promise.all(asked)).toEqual(['rested', 1]);
    expect(await refusedWith(thread.call({ echo: 2 }, LONG))).toBe('expired');
    await thread.close();
    expect(deaths).toEqual([]);
  });

  it('can be closed after it died', async () => {
    expect(await refusedWith(thread.call('die', LONG))).toBe('no_answer');
    await thread.close();
  });

  it('reports no_answer if it cannot even start', async () => {
    const absent = startThread(join(__dirname, 'there-is-no-such-thread.js'), {});
    expect(await refusedWith(absent.call({ echo: 1 }, LONG))).toBe('no_answer');
    await absent.close();
  });
});
