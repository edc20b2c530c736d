import { boundedCounters } from '../../src/limits/counters';

const MAX = 100;
const WINDOW = 10_000;

const counters = (max = MAX) => {
  const clock = { now: 0 };
  return { clock, ...boundedCounters(max, () => clock.now) };
};

const name = (number: number): string => `key-${number}`;

describe('bounded counters', () => {
  it('count within a window and start again at its end, not before', () => {
    const { clock, add } = counters();
    expect(add('a', 1, WINDOW)).toEqual({ points: 1, endsAt: 10_000 });
    clock.now = 9_999.999;
    expect(add('a', 1, WINDOW)).toEqual({ points: 2, endsAt: 10_000 });
    clock.now = 10_000;
    expect(add('a', 1, WINDOW)).toEqual({ points: 1, endsAt: 20_000 });
  });

  it('evict the entry with the oldest window to make room', () => {
    const { clock, add, get, kept, dropped } = counters();
    for (let number = 0; number < MAX; number += 1) add(name(number), 1, WINDOW);
    clock.now = 5_000;
    add(name(0), 1, WINDOW);
    expect([kept(), dropped()]).toEqual([MAX, 0]);
    add('new', 1, WINDOW);
    expect([kept(), dropped()]).toEqual([MAX, 1]);
    expect([get(name(0)), get(name(1))?.points, get('new')?.points]).toEqual([undefined, 1, 1]);
  });

  it('keep blocked entries while there is anything else to evict', () => {
    const { add, block, get, kept, dropped } = counters();
    for (let number = 0; number < MAX; number += 1) add(name(number), 1, WINDOW);
    for (let number = 0; number < 10; number += 1) block(name(number), 6, WINDOW);
    for (let number = 0; number < 10 * MAX; number += 1) add(`other-${number}`, 1, WINDOW);
    expect(kept()).toBe(MAX);
    expect(dropped()).toBe(10 * MAX);
    for (let number = 0; number < 10; number += 1) expect(get(name(number))?.points).toBe(6);
    expect(get(name(10))).toBeUndefined();
  });

  it('evict the block that started first if there is nothing else', () => {
    const { block, add, get, kept, dropped } = counters();
    for (let number = 0; number < MAX; number += 1) block(name(number), 6, WINDOW);
    add('new', 1, WINDOW);
    expect([kept(), dropped()]).toEqual([MAX, 1]);
    expect([get(name(0)), get(name(1))?.points]).toEqual([undefined, 6]);
  });

  it('remove expired entries gradually, which does not count as an eviction', () => {
    const { clock, add, block, kept, dropped } = counters();
    for (let number = 0; number < MAX - 10; number += 1) add(name(number), 1, WINDOW);
    for (let number = 0; number < 10; number += 1) block(`blocked-${number}`, 6, WINDOW);
    clock.now = WINDOW;
    for (let number = 0; number < MAX / 2; number += 1) add(`new-${number}`, 1, WINDOW);
    expect([kept(), dropped()]).toEqual([MAX / 2, 0]);
  });

  it('count a key in one place only', () => {
    const { clock, add, block, remove, kept } = counters();
    add('a', 1, WINDOW);
    block('a', 6, WINDOW);
    expect(kept()).toBe(1);
    clock.now = WINDOW;
    expect(add('a', 1, WINDOW).points).toBe(1);
    expect(kept()).toBe(1);
    expect([remove('a'), remove('a'), kept()]).toEqual([true, false, 0]);
  });
});
