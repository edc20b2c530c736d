import { setTimeout as pace } from 'node:timers/promises';
import { beside, type Beside } from '../support/beside';
import { customerOf, idsOf, type Customer } from '../support/customers';
import type { ApiResponse } from '../support/http';
import { seed, seeded } from '../support/property';
import { fact, reportFacts } from '../support/reported-facts';
import { startService, type Service } from '../support/service';
import { until } from '../support/waiting';

const randomFrom = (start: number) => {
  let state = start >>> 0;
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};
const random = randomFrom(seed);

const types = ['TokenRead', 'CardUsed', 'ProxyRead'];
const someFacts = (count: number) =>
  Array.from({ length: count }, () => fact(types[random(types.length)]!, `e${random(4)}`));

/** Walks a long log by cursor and by page while about 200 rows a second arrive. */
describe('a walk through a growing log', () => {
  let service: Service;
  let by: Beside;
  let customer: Customer;
  beforeAll(async () => {
    service = await startService({ DEMO: 'false' });
    by = await beside(service);
    customer = await customerOf(() => service, by);
    await customer.report(...someFacts(300));
  });

  /** Requests the first page, waits until more rows are shown than then, and continues while more arrive. */
  const whileRowsArrive = async (
    first: string,
    walkOn: (first: ApiResponse) => Promise<readonly string[]>,
  ): Promise<readonly string[]> => {
    const stop = new AbortController();
    const arrive = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        await reportFacts(service.folder, customer.tenantId, someFacts(5));
        await pace(25);
      }
    };
    const total = async (): Promise<number> => (await customer.get('?size=1')).json.pagination.total_items;
    const arriving = arrive();
    try {
      const response = await customer.get(first);
      const before = await total();
      await until(async () => (await total()) >= before + 20);
      return [...idsOf(response), ...(await walkOn(response))];
    } finally {
      stop.abort();
      await arriving;
    }
  };

  /** The current rows of a filter, from one read of the whole log. */
  const present = async (filter: string): Promise<readonly string[]> => {
    const all: string[] = [];
    let start: string | undefined = '';
    while (start !== undefined) {
      const response: ApiResponse = await customer.get(`?${filter}&size=100&start=${start}`);
      all.push(...idsOf(response));
      start = response.json.pagination.next;
    }
    return all;
  };

  const filters = ['', 'end_date=2099-01-01', 'entity_type=card&entity_id=e2', 'operation=read'];

  it.each(filters)(
    seeded('by cursor sees each row that was there at the start once, and none twice: "%s"'),
    async (filter) => {
      const there = await present(filter);
      const query = `?${filter}&size=${5 + random(6)}`;
      const seen = await whileRowsArrive(query, async (first) => {
        const rows: string[] = [];
        let start: string | undefined = first.json.pagination.after;
        while (start !== undefined) {
          const response: ApiResponse = await customer.get(`${query}&start=${start}`);
          rows.push(...idsOf(response));
          start = response.json.pagination.after;
        }
        return rows;
      });
      expect(new Set(seen).size).toBe(seen.length);
      const known = new Set(there);
      expect(seen.filter((id) => known.has(id))).toEqual(there);
      expect(seen.length - there.length).toBe(seen.indexOf(there[0]!));
    },
  );

  it.each(filters)(
    seeded('by page ends and misses no row that was there at the start: "%s"'),
    async (filter) => {
      const there = await present(filter);
      const query = `?${filter}&size=${30 + random(30)}`;
      const seen = await whileRowsArrive(query, async () => {
        const rows: string[] = [];
        for (let page = 2; ; page += 1) {
          const found = idsOf(await customer.get(`${query}&page=${page}`));
          if (found.length === 0) return rows;
          rows.push(...found);
        }
      });
      const known = new Set(there);
      expect([...new Set(seen)].filter((id) => known.has(id))).toEqual(there);
    },
  );
});
