import { beside, type Beside } from '../support/beside';
import { customerOf, type Customer } from '../support/customers';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { fact } from '../support/reported-facts';
import { startService, type Service } from '../support/service';

describe('GET /logs/counts', () => {
  let service: Service;
  let by: Beside;
  let customer: Customer;
  beforeAll(async () => {
    service = await startService({ DEMO: 'false' });
    by = await beside(service);
    customer = await customerOf(() => service, by);
    await customer.report(fact('TokenCreated', 'a'), fact('TokenRead', 'a'), fact('CardCreated', 'b'));
  });

  const count = (query: string) => ask(`${service.url}/logs/counts?${query}`, { key: customer.key });
  const around = (ms: number): string => {
    const now = Date.now();
    return `start_date=${new Date(now - ms).toISOString()}&end_date=${new Date(now + ms).toISOString()}`;
  };

  it('counts from the first moment there is, if the default start would be before it', async () => {
    const { status, json } = await count('end_date=0000-01-05');
    expect([status, json.data[0].start_date]).toEqual([200, '0000-01-01T00:00:00.000Z']);
  });

  it.each([
    ['minute', 60_000 * 50],
    ['hour', 3_600_000 * 50],
    ['day', 86_400_000 * 50],
  ])('counts the rows of each %s, as /logs lists them', async (interval, ms) => {
    const { data } = (await ask(`${service.url}/logs?size=100`, { key: customer.key })).json;
    const range = around(ms);
    const { json } = await count(`interval=${interval}&${range}`);
    expect(json.interval).toBe(interval);
    const starts = (json.data as { start_date: string }[]).map(({ start_date }) => start_date);
    expect(starts[0]).toBe(new URLSearchParams(range).get('start_date'));
    expect(starts.length).toBeGreaterThanOrEqual(100);
    expect(json.data).toEqual(
      starts.map((start, i) => ({
        start_date: start,
        count: data.filter(
          ({ created_at }: { created_at: string }) =>
            created_at >= start && created_at < (starts[i + 1] ?? '9'),
        ).length,
      })),
    );
  });

  it('counts those of one entity type', async () => {
    const total = async (query: string): Promise<number> => {
      const { json } = await count(`interval=day&${around(86_400_000)}${query}`);
      return (json.data as { count: number }[]).reduce((sum, one) => sum + one.count, 0);
    };
    expect(await total('&entity_type=token')).toBe(2);
    expect(await total('&entity_type=Token')).toBe(2);
    expect(await total('&entity_type=card')).toBe(1);
    expect(await total('&entity_type=unknown')).toBe(0);
  });

  it('counts nothing between a date and itself', async () => {
    const { json } = await count('interval=day&start_date=2026-01-01&end_date=2026-01-01');
    expect(json.data).toEqual([]);
  });

  it('counts the last 30 days unless told otherwise', async () => {
    const { json } = await count('');
    expect(json.interval).toBe('day');
    expect(json.data).toHaveLength(31);
    const counts = (json.data as { readonly count: number }[]).map((each) => each.count);
    expect(counts.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(0);
  });

  describe.each(['operation', 'entity_type'] as const)('by %s', (member) => {
    const naive = async (from: string, upTo: string): Promise<ReadonlyMap<string, number>> => {
      const { data } = (await ask(`${service.url}/logs?size=100`, { key: customer.key })).json;
      const counts = new Map<string, number>();
      for (const row of data as Record<string, string>[]) {
        const { [member]: value = '', created_at: at = '' } = row;
        if (at >= from && at < upTo) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      return counts;
    };

    it('counts what /logs lists, largest first', async () => {
      const range = around(86_400_000);
      const { json } = await count(`interval=day&${range}&by=${member}`);
      const dates = new URLSearchParams(range);
      const expected = await naive(dates.get('start_date') ?? '', dates.get('end_date') ?? '');
      const counts = json.groups.map((group: { count: number }) => group.count);
      expect(counts).toEqual(counts.toSorted((a: number, b: number) => b - a));
      expect(
        new Map(json.groups.map((group: { value: string; count: number }) => [group.value, group.count])),
      ).toEqual(expected);
      expect(json.rest).toBe(0);
    });

    it('counts within the dates only', async () => {
      const { data } = (await ask(`${service.url}/logs?size=100`, { key: customer.key })).json;
      const times = [...new Set((data as { created_at: string }[]).map((row) => row.created_at))].toSorted();
      const [from, upTo] = [times[1] ?? '', times.at(-1) ?? ''];
      const { json } = await count(`interval=day&start_date=${from}&end_date=${upTo}&by=${member}`);
      const groups = new Map(
        json.groups.map((group: { value: string; count: number }) => [group.value, group.count]),
      );
      expect(groups).toEqual(await naive(from, upTo));
    });

    it('has nothing between a date and itself, and before everything', async () => {
      for (const query of [
        'start_date=2026-01-01&end_date=2026-01-01',
        'start_date=2020-01-01&end_date=2020-01-02',
      ])
        expect((await count(`${query}&by=${member}`)).json).toMatchObject({ groups: [], rest: 0 });
    });
  });

  it('shows the 10 largest groups, and how much the rest is', async () => {
    const other = await customerOf(() => service, by);
    const facts = Array.from({ length: 12 }, (_, i) =>
      Array.from({ length: i + 10 }, (__, j) =>
        fact('ActivityReported', `e${i}-${j}`, { data: { entityType: `kind-${i}`, operation: `done-${i}` } }),
      ),
    ).flat();
    await other.report(...facts);
    const { json } = await ask(`${service.url}/logs/counts?by=operation`, { key: other.key });
    const largest = Array.from({ length: 10 }, (_, i) => ({ value: `done-${11 - i}`, count: 21 - i }));
    expect(json.groups).toEqual(largest);
    const { total_items: total } = (await other.get('?size=1')).json.pagination;
    expect(json.rest).toBe(total - largest.reduce((sum, group) => sum + group.count, 0));
  });

  it.each([
    ['interval=day&start_date=2026-01-02&end_date=2026-01-01', 'start_date'],
    ['interval=week&start_date=2026-01-01&end_date=2026-01-02', 'interval'],
    ['interval=minute&start_date=2026-01-01&end_date=2026-01-02', 'interval'],
    ['interval=hour&start_date=2026-01-01&end_date=2026-01-02&actor_id=x', 'actor_id'],
    ['by=actor_id', 'by'],
    ['by=operation&entity_type=token', 'by'],
  ])('refuses %s', async (query, field) => {
    expectProblem(await count(query), { status: 400, code: 'validation_failed', fields: [field] });
  });

  it('names what can be counted by', async () => {
    const { json } = await count('interval=hour&operation=read');
    expect(json.errors.operation[0]).toContain('interval, start_date, end_date, entity_type and by');
  });
});
