import { besideForTests } from '../support/beside';
import { customerOf, type Customer } from '../support/customers';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { fact } from '../support/reported-facts';
import { serviceForTests } from '../support/service';

const ACTOR = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';
const metadata = { actor: { type: 'user', id: ACTOR }, traceId: 'trace-1' };

describe('GET /logs/counts', () => {
  const service = serviceForTests({ DEMO: 'false' });
  const by = besideForTests(service);
  let customer: Customer;
  beforeAll(async () => {
    customer = await customerOf(() => service, by);
    await customer.report(
      fact('TokenCreated', 'a'),
      fact('TokenRead', 'a', { metadata }),
      fact('CardCreated', 'b'),
    );
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

  it('counts days from the midnight of any zone, and a part of a day at the end', async () => {
    const { json } = await count('interval=day&start_date=2026-01-01T00:00%2B02:00&end_date=2026-01-03');
    const starts = (json.data as { start_date: string }[]).map(({ start_date }) => start_date);
    expect(starts).toEqual([
      '2025-12-31T22:00:00.000Z',
      '2026-01-01T22:00:00.000Z',
      '2026-01-02T22:00:00.000Z',
    ]);
  });

  it('counts those of one filter, and of an entity and its type', async () => {
    const total = async (query: string): Promise<number> => {
      const { json } = await count(`interval=day&${around(86_400_000)}${query}`);
      return (json.data as { count: number }[]).reduce((sum, one) => sum + one.count, 0);
    };
    expect(await total('&entity_type=token')).toBe(2);
    expect(await total('&entity_type=Token')).toBe(2);
    expect(await total('&entity_type=card')).toBe(1);
    expect(await total('&entity_type=unknown')).toBe(0);
    expect(await total('&entity_id=b')).toBe(1);
    expect(await total('&entity_id=a&entity_type=token')).toBe(2);
    expect(await total('&entity_id=b&entity_type=token')).toBe(0);
    expect(await total('&operation=Read')).toBe(1);
    expect(await total('&actor_id=unknown')).toBe(0);
    expect(await total(`&actor_id=${ACTOR}`)).toBe(1);
    expect(await total('&trace_id=trace-1')).toBe(1);
    expect(await total('&source=fact')).toBe(3);
  });

  it.each([
    ['120 intervals, which is the most', 120, '2026-05-01'],
    ['nothing between a date and itself', 0, '2026-01-01'],
  ])('counts %s', async (_, intervals, end) => {
    const { json } = await count(`interval=day&start_date=2026-01-01&end_date=${end}`);
    expect(json.data).toHaveLength(intervals);
  });

  it('counts the last 30 days unless told otherwise', async () => {
    const { json } = await count('');
    expect(json.interval).toBe('day');
    expect(json.data).toHaveLength(31);
    const counts = (json.data as { readonly count: number }[]).map((each) => each.count);
    expect(counts.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(0);
  });

  it.each([
    ['interval=day&start_date=2026-01-02&end_date=2026-01-01', 'start_date'],
    ['interval=week&start_date=2026-01-01&end_date=2026-01-02', 'interval'],
    ['interval=minute&start_date=2026-01-01&end_date=2026-01-02', 'interval'],
    ['interval=day&start_date=2026-01-01&end_date=2026-05-01T00:01Z', 'interval'],
    ['interval=hour&start_date=2026-01-01&end_date=2026-01-02&actor_id=x&entity_id=x', 'actor_id'],
    ['trace_id=x&entity_type=token', 'trace_id'],
    ['operation=read&entity_type=token', 'operation'],
    ['source=fact&entity_type=token', 'source'],
    ['source=facts', 'source'],
  ])('refuses %s', async (query, field) => {
    expectProblem(await count(query), 400, 'validation_failed', field);
  });

  it('names what can be counted by', async () => {
    const { json } = await count('interval=hour&operations=read');
    expect(json.errors.operations[0]).toContain(
      'interval, entity_type, entity_id, start_date, end_date, actor_id, operation, trace_id and source',
    );
  });
});
