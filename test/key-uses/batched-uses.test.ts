import { randomUUID } from 'node:crypto';
import { batchedUses, type KeyUsesOptions } from '../../src/key-uses/batched-uses';
import type { KeyDay } from '../../src/key-uses/key-uses';
import { deferred, until } from '../support/waiting';
import { request, time } from './contract';

const TENANT = randomUUID();

const sumOf = (days: readonly KeyDay[]): number =>
  days.reduce((sum, { operations }) => sum + (operations['getTenant'] ?? 0), 0);

/** Writes that the test finishes one by one. */
const given = (options: KeyUsesOptions = {}) => {
  const writes: { days: readonly KeyDay[]; done: (error?: Error) => void }[] = [];
  const reports: string[] = [];
  let isAnswering = false;
  const write = (days: readonly KeyDay[]): Promise<void> => {
    const { promise, resolve } = deferred<Error | undefined>();
    writes.push({ days, done: resolve });
    if (isAnswering) resolve(undefined);
    return promise.then((error) => {
      if (error !== undefined) throw error;
    });
  };
  const report = (_: string, error: unknown) => reports.push((error as Error).message);
  /** From now on the store answers. */
  const answerAll = (): void => {
    isAnswering = true;
    for (const { done } of writes) done();
  };
  return { ...batchedUses(write, { report, ...options }), writes, reports, answerAll };
};

describe('uses of keys that are gathered', () => {
  it('are written soon if they are the first of their key, and later ones together', async () => {
    const { used, writes, close } = given({ periodMs: 200 });
    used(request(TENANT, 'a', time(1)));
    used(request(TENANT, 'b', time(1)));
    await until(() => writes.length === 1);
    expect(writes[0]!.days.map(({ keyId }) => keyId)).toEqual(['a', 'b']);
    writes[0]!.done();
    for (let i = 0; i < 1_000; i += 1) used(request(TENANT, 'a', time(2)));
    await until(() => writes.length === 2);
    expect(writes[1]!.days).toMatchObject([
      { keyId: 'a', operations: { getTenant: 1_000 }, firstAt: time(2) },
    ]);
    writes[1]!.done();
    await close();
    expect(writes).toHaveLength(2);
  });

  it('of ten thousand keys and more take bounded memory while the store does not answer, and say what is lost', async () => {
    const { used, writes, reports, close, answerAll } = given({ maxKeysPerTenant: 100_000 });
    for (let i = 0; i < 50_000; i += 1) used(request(TENANT, `k${i}`, time(1)));
    expect(writes.map(({ days }) => days.length)).toEqual([500]);
    used(request(TENANT, 'k10000', time(2)));
    answerAll();
    await close();
    expect(new Set(writes.map(({ days }) => days.length))).toEqual(new Set([500]));
    const written = writes.flatMap(({ days }) => days);
    expect([written.length, sumOf(written)]).toEqual([10_500, 10_501]);
    expect(reports).toEqual(['Too many keys: 39500 uses.']);
  });

  it('of one tenant do not crowd out the others', async () => {
    const { used, writes, close, answerAll } = given();
    for (let i = 0; i < 5_000; i += 1) used(request(TENANT, `k${i}`, time(1)));
    used(request(randomUUID(), 'another', time(1)));
    answerAll();
    await close();
    const written = writes.flatMap(({ days }) => days);
    expect([written.length, written.at(-1)?.keyId]).toEqual([1_501, 'another']);
  });

  it('are given up when the process ends and the store does not take them', async () => {
    const { used, writes, close } = given();
    for (let i = 0; i < 600; i += 1) used(request(TENANT, `k${i}`, time(1)));
    const closed = close();
    await until(() => writes.length === 1);
    writes[0]!.done(new Error('The store is away.'));
    await closed;
    expect(writes).toHaveLength(1);
  });

  it('that could not be written are written later, together with what came in the meantime', async () => {
    const { used, writes, reports, close } = given({ periodMs: 50 });
    used(request(TENANT, 'a', time(1)));
    await until(() => writes.length === 1);
    used(request(TENANT, 'a', time(2)));
    writes[0]!.done(new Error('The store is away.'));
    await until(() => writes.length === 2);
    expect(writes[1]!.days).toMatchObject([
      { operations: { getTenant: 2 }, firstAt: time(1), lastAt: time(2) },
    ]);
    writes[1]!.done();
    await close();
    expect([writes.length, reports]).toEqual([2, []]);
  });
});
