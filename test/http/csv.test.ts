import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { RouteRequest } from '../../src/http/route';
import { exportLogs } from '../../src/http/routes/log-csv';
import { besideForTests } from '../support/beside';
import { customerOf, type Customer } from '../support/customers';
import { ask } from '../support/http';
import { openAppIn } from '../support/profile';
import { fact } from '../support/reported-facts';
import { serviceForTests } from '../support/service';

const linesOf = (csv: string): readonly string[] => csv.split('\r\n').slice(0, -1);

describe('CSV', () => {
  const service = serviceForTests({ DEMO: 'false' });
  const by = besideForTests(service);
  let customer: Customer;
  beforeAll(async () => {
    customer = await customerOf(() => service, by);
    const tokens = Array.from({ length: 1_201 }, (_, i) => fact('TokenCreated', `token ${i}`));
    await customer.report(...tokens, fact('CardRead', 'card, "one"'));
  });

  const get = (path: string) => ask(`${service.url}${path}`, { key: customer.key });

  it.each([
    '',
    '?entity_type=token',
    '?source=fact',
    '?operation=create&entity_type=token',
    '?end_date=2020-01-01',
  ])('of /logs/csv%s has every row of the filter, newest first', async (query) => {
    const { status, headers, text: csv } = await get(`/logs/csv${query}`);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
    const ids: string[] = [];
    for (let start: string | undefined = ''; start !== undefined;) {
      const page = new URLSearchParams([...new URLSearchParams(query), ['size', '100'], ['start', start]]);
      const { json } = await get(`/logs?${page.toString()}`);
      ids.push(...json.data.map(({ id }: { id: string }) => id));
      start = json.pagination.next as string | undefined;
    }
    const [heading, ...rows] = linesOf(csv);
    expect(heading).toBe(
      'id,tenant_id,actor_id,actor_type,entity_type,entity_id,operation,message,created_at,source,actor_name,occurred_at',
    );
    expect(rows.map((row) => row.slice(0, 36))).toEqual(ids);
  });

  it('quotes what contains separators, and keeps spreadsheets from running formulas', async () => {
    const cards = (await get('/logs/csv?entity_type=card')).text;
    expect(cards).toContain(',"card, ""one""",');
    const texts = ['=1+1', '+1', '-1', '@x', '\tx', '\rx'];
    await customer.report(
      ...texts.map((entityId) =>
        fact('ActivityReported', entityId, { data: { entityType: 'formula', operation: 'x' } }),
      ),
    );
    const formulas = (await get('/logs/csv?entity_type=formula')).text;
    for (const entityId of texts) expect(formulas).toContain(`'${entityId}`);
    expect(formulas).toContain(`,"'\rx",`);
    expect(formulas).not.toMatch(/,"?[=+\-@\t]/);
  });

  it('fails if it is cut off, so that nobody takes it for complete', async () => {
    const app = await openAppIn(service.folder);
    const stopping = AbortSignal.abort();
    const events = { openStream: () => () => undefined, nextSlice: async () => undefined, stopping };
    const { tenantId } = customer;
    const read: RouteRequest<undefined>['read'] = async (asked) =>
      (await app.live.query(tenantId, asked)).value;
    const request = { tenantId, query: {}, read, caller: { digest: '' }, gaveOut: () => undefined };
    const dependencies = { events, ledger: app.ledger };
    const { body } = await exportLogs.handle(request as never, dependencies as never);
    await expect(text(body as Readable)).rejects.toMatchObject({ code: 'stream_cut_off' });
    await app.close();
  });

  it('has no pages, and /logs no CSV', async () => {
    const paged = await get('/logs/csv?page=1');
    expect([paged.status, Object.keys(paged.json.errors)]).toEqual([400, ['page']]);
    const { headers } = await ask(`${service.url}/logs`, {
      key: customer.key,
      headers: { Accept: 'text/csv' },
    });
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  });
});
