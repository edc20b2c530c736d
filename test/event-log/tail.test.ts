import { randomUUID } from 'node:crypto';
import { monotonicMs } from '../../src/async/clock';
import type { Batch, EventLog } from '../../src/event-log/event-log';
import { tailOf } from '../../src/event-log/tail';
import { created, openLog, streams, updated, type TestLog } from '../projecting/harness';
import { closeAfterwards } from '../support/closing';
import { until } from '../support/waiting';

const LONG = 20_000;

const opened = async ({ maxBytes = 1_000_000, around = (log: TestLog): EventLog => log } = {}) => {
  const log = await openLog();
  const tenantId = randomUUID();
  const record = async (name: string, id = tenantId): Promise<string> =>
    (await log.record(streams.tenant(id), name === 'created' ? created() : updated(name))).position;
  const start = await record('created');
  const errors: unknown[] = [];
  const tail = tailOf({ log: around(log), streams }, { maxBytes, onError: (error) => errors.push(error) });
  closeAfterwards(tail.close);
  expect(await tail.reached(start, LONG)).toBe(true);
  return { log, tenantId, record, start, tail, errors };
};

const positionsOf = (batch: Batch | undefined) => batch?.map(({ position }) => position);

describe('the tail of a log', () => {
  it('has what is appended after it was opened, of all tenants and of each', async () => {
    const { tail, tenantId, record, start } = await opened();
    const other = randomUUID();
    const positions = [await record('a'), await record('created', other), await record('b')];
    const [a = '', between = '', b = ''] = positions;
    expect(await tail.reached(b, LONG)).toBe(true);
    expect(positionsOf(tail.after(start))).toEqual(positions);
    expect(positionsOf(tail.after(between))).toEqual([b]);
    expect(positionsOf(tail.ofTenant(tenantId, start, b))).toEqual([a, b]);
    expect(positionsOf(tail.ofTenant(tenantId, start, between))).toEqual([a]);
    expect(positionsOf(tail.ofTenant(tenantId, a, b))).toEqual([b]);
    expect(positionsOf(tail.ofTenant(randomUUID(), start, b))).toEqual([]);
    const [event] = tail.after(between)!;
    expect(tail.ageMs(event!)).toBeLessThan(LONG);
    expect(tail.ageMs({ ...event!, position: start })).toBe(Infinity);
  });

  it('does not go back to before it was opened', async () => {
    const { tail, tenantId, record, start } = await opened();
    const a = await record('a');
    expect(await tail.reached(a, LONG)).toBe(true);
    expect([tail.after(undefined), tail.after('')]).toEqual([undefined, undefined]);
    expect(tail.ofTenant(tenantId, '', a)).toBeUndefined();
    expect(positionsOf(tail.ofTenant(tenantId, start, a))).toEqual([a]);
  });

  it('keeps the newest events, as many as fit', async () => {
    const { tail, tenantId, record, start } = await opened({ maxBytes: 20_000 });
    const positions: string[] = [];
    while (positions.length < 100) positions.push(await record('x'.repeat(150)));
    const last = positions.at(-1)!;
    expect(await tail.reached(last, LONG)).toBe(true);
    expect([tail.after(start), tail.ofTenant(tenantId, start, last)]).toEqual([undefined, undefined]);
    const known = positions.filter((position) => tail.after(position) !== undefined);
    const [first = ''] = known;
    expect(positionsOf(tail.after(first))).toEqual(known.slice(1));
    expect(positionsOf(tail.ofTenant(tenantId, first, last))).toEqual(known.slice(1));
    const bytes = tail.after(first)!.reduce((sum, event) => sum + (event.bytes ?? 0), 0);
    expect(bytes).toBeGreaterThan(3_000);
    expect(bytes).toBeLessThan(20_000);
    expect(known.length).toBeLessThan(40);
  });

  it('says in time whether it has passed a position, and when there is more', async () => {
    const { tail, record } = await opened();
    const beyond = '9';
    const began = monotonicMs();
    expect([await tail.reached(beyond, 0), await tail.reached(beyond, 50)]).toEqual([false, false]);
    await tail.more(50);
    expect(monotonicMs() - began).toBeGreaterThanOrEqual(95);
    const more = tail.more(LONG);
    const a = await record('a');
    await more;
    expect(await tail.reached(a, LONG)).toBe(true);
    const waiting = tail.reached(beyond, LONG);
    await tail.close();
    expect(await waiting).toBe(false);
    expect(monotonicMs() - began).toBeLessThan(LONG);
  });

  it('goes on where it was after a failure', async () => {
    let failures = 2;
    const { tail, record, start, errors } = await opened({
      around: (log) => ({
        ...log,
        readAll: async function* (from) {
          for await (const batch of log.readAll(from)) {
            yield batch;
            if (failures-- > 0) throw new Error('It is away.');
          }
        },
      }),
    });
    const positions: string[] = [];
    while (positions.length < 4) {
      positions.push(await record('a'));
      await until(() => tail.reached(positions.at(-1)!, 0));
    }
    expect(positionsOf(tail.after(start))).toEqual(positions);
    expect(errors).toHaveLength(2);
  });
});
