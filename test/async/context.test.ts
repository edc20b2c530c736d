import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { accessRecord } from '../../src/access/access-record';
import { yieldToEventLoop } from '../../src/async/clock';
import { inBackground, inThisContext } from '../../src/async/context';
import { singleFlight } from '../../src/async/single-flight';
import { inLaterTurn } from '../../src/async/turns';
import { batchedUses } from '../../src/key-uses/batched-uses';
import { until } from '../support/waiting';

const request = new AsyncLocalStorage<string>();

const ids = { tenantId: randomUUID(), applicationId: randomUUID(), keyId: randomUUID() };
const use = { ...ids, at: '2026-01-01T00:00:00.000Z', address: '192.0.2.1' };

/** Starts work in the context of a request. Resolves to the context that the work ran in. */
const seenBy = async (start: (see: () => void) => void): Promise<unknown> => {
  const seen: unknown[] = [];
  request.run('the request that happened to come first', () => start(() => seen.push(request.getStore())));
  await until(() => seen.length > 0);
  return seen[0];
};

describe('work that is deferred', () => {
  it('runs in the context that it was deferred in', async () => {
    const later: (() => void)[] = [];
    const seen: unknown[] = [];
    for (const name of ['a', 'b', undefined])
      request.run(name as string, () => later.push(inThisContext(() => void seen.push(request.getStore()))));
    request.run('another', () => later.forEach((work) => work()));
    expect(seen).toEqual(['a', 'b', undefined]);
  });

  it('keeps its context in a later turn, also if a busy turn has put it off', async () => {
    const seen: string[] = [];
    for (let n = 0; n < 50; n += 1)
      request.run(`${n}`, () =>
        inLaterTurn(() => {
          for (const end = performance.now() + 1; performance.now() < end;);
          seen.push(`${n} in ${request.getStore()}`);
        }),
      );
    while (seen.length < 50) await yieldToEventLoop();
    expect(seen).toEqual(Array.from({ length: 50 }, (_, n) => `${n} in ${n}`));
  });
});

describe('work for many requests runs in the context of none', () => {
  it.each<readonly [string, (see: () => void) => void]>([
    ['whatever it is', (see) => inBackground(see)],
    ['a run that callers share', (see) => singleFlight(async () => see()).current()],
    [
      'the record of refused access',
      (see) =>
        accessRecord({
          append: async () => see(),
          warn: () => undefined,
          recordsClients: true,
          everyMs: 1,
        }).refused({
          ...use,
          fault: 'revoked',
        }),
    ],
    [
      'the record of the uses of keys',
      (see) => batchedUses(async () => see(), {}).used({ ...use, what: { operation: 'getTenant' } }),
    ],
  ])('%s', async (_, start) => {
    expect(await seenBy(start)).toBeUndefined();
  });

  it('but goes on in that of each caller', async () => {
    const flight = singleFlight(async () => yieldToEventLoop());
    const after = (name: string) =>
      request.run(name, async () => {
        await flight.current().done;
        return request.getStore();
      });
    expect(await Promise.all(['a', 'b'].map(after))).toEqual(['a', 'b']);
  });
});
