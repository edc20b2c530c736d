import { randomUUID } from 'node:crypto';
import { monotonicMs } from '../../src/async/clock';
import type { EventLog } from '../../src/event-log/event-log';
import { fault } from '../../src/fault';
import { reportingFacts } from '../../src/ingest/report-facts';
import { eventsOf } from '../support/events';
import { aFact, textOf, type Fact } from '../support/facts';
import { freshFolder } from '../support/folders';
import { readingsOf, type Readings } from '../support/readings';
import { refusedWith } from '../support/waiting';

const service = { id: randomUUID(), name: 'Gateway' };
const away = () => fault('log_unavailable', 'Away.');

describe('reported facts', () => {
  let here: Readings;
  let tenants: readonly string[];
  beforeAll(async () => {
    here = await readingsOf(freshFolder());
    await here.app.catchUp((await here.app.log.head())?.position ?? '', 10_000);
    tenants = [await here.newTenant(), await here.newTenant()];
  });

  const reporting = (append?: EventLog['append']) => {
    const { log, streams, ledger, live } = here.app;
    const asked = append === undefined ? log : { ...log, append };
    return reportingFacts({ log: asked, streams, ledger, readModels: live });
  };
  const request = (facts: readonly Fact[], withinMs = 20_000) => ({
    service,
    at: new Date().toISOString(),
    deadline: monotonicMs() + withinMs,
    facts: Buffer.from(textOf(facts)),
  });
  const ids = async (tenantId: string) =>
    (await eventsOf(here.app.log.readStream(here.app.streams.activity(tenantId)))).map(({ id }) => id);

  it('are all refused if the log could not take any', async () => {
    const report = reporting(async () => Promise.reject(away()));
    const facts = tenants.map((tenantId) => aFact(tenantId));
    expect(await refusedWith(report(request(facts)))).toBe('log_unavailable');
    expect(await refusedWith(reporting()(request(facts, 0)))).toBe('log_unavailable');
  });

  it('of one tenant are to be sent again if only that could not be appended', async () => {
    const { log, streams } = here.app;
    const [first = '', second = ''] = tenants;
    const append: EventLog['append'] = (stream, ...more) =>
      stream === streams.activity(first) ? Promise.reject(away()) : log.append(stream, ...more);
    const facts = [aFact(first), aFact(second)];
    expect(await reporting(append)(request(facts))).toMatchObject({
      accepted: 1,
      refused: [{ line: 1, id: facts[0]?.id, code: 'tenant_unavailable', retry: true }],
    });
    expect(await ids(second)).toContain(facts[1]?.id);
    expect(await reporting()(request(facts))).toMatchObject({ refused: [] });
    expect((await ids(second)).filter((id) => id === facts[1]?.id)).toHaveLength(1);
  });

  it('may be there if the outcome of an append is unknown, and are sent again safely', async () => {
    const { log } = here.app;
    const append: EventLog['append'] = async (...asked) => {
      await log.append(...asked);
      throw fault('outcome_unknown', 'No answer.');
    };
    const facts = tenants.map((tenantId) => aFact(tenantId));
    expect(await refusedWith(reporting(append)(request(facts)))).toBe('outcome_unknown');
    expect(await reporting()(request(facts))).toMatchObject({ accepted: 0, alreadyThere: 2 });
    for (const [at, tenantId] of tenants.entries())
      expect((await ids(tenantId)).filter((id) => id === facts[at]?.id)).toHaveLength(1);
  });

  it('of unknown tenants cost one look at the log in 500 ms, and no turn of others', async () => {
    const { log, streams, ledger, live } = here.app;
    let asks = 0;
    const counting = {
      exists: ledger.exists,
      ask: (...asked: Parameters<typeof ledger.ask>) => {
        asks += 1;
        return ledger.ask(...asked);
      },
    } as typeof ledger;
    const report = reportingFacts({ log, streams, ledger: counting, readModels: live });
    const unknown = aFact(randomUUID());
    const looks = jest.spyOn(log, 'revisionAt');
    for (let n = 0; n < 5; n += 1)
      expect((await report(request([unknown]))).refused).toMatchObject([{ code: 'unknown_tenant' }]);
    expect(asks).toBe(0);
    expect(
      looks.mock.calls.filter(([stream]) => stream === streams.tenant(unknown.tenant_id)).length,
    ).toBeLessThan(5);
    looks.mockRestore();
  });

  it('are appended a few at a time, and cost no look at their tenants when they are sent again', async () => {
    const { log, streams, ledger, live } = here.app;
    const asks = jest.spyOn(ledger, 'ask');
    let [under, most] = [0, 0];
    const append: EventLog['append'] = async (stream, events, ...more) => {
      most = Math.max(most, (under += events.length));
      try {
        return await log.append(stream, events, ...more);
      } finally {
        under -= events.length;
      }
    };
    const report = reportingFacts({ log: { ...log, append }, streams, ledger, readModels: live });
    const facts = tenants.flatMap((tenantId) => Array.from({ length: 50 }, () => aFact(tenantId)));
    expect(await report(request(facts))).toMatchObject({ accepted: 100, refused: [] });
    expect([most, asks.mock.calls.length]).toEqual([32, 2]);
    await here.app.catchUp((await log.head())?.position ?? '', 10_000);
    asks.mockClear();
    expect(await report(request(facts))).toMatchObject({ accepted: 0, alreadyThere: 100 });
    expect(asks).not.toHaveBeenCalled();
    asks.mockRestore();
  });

  it('give way to everything else every few milliseconds', async () => {
    const facts = Array.from({ length: 1_000 }, () => aFact(tenants[0] ?? ''));
    let [ticks, isOver] = [0, false];
    const tick = (): void => {
      ticks += 1;
      if (!isOver) setImmediate(tick);
    };
    setImmediate(tick);
    const done = await reporting()(request(facts));
    isOver = true;
    expect(done.accepted).toBe(1_000);
    expect(ticks).toBeGreaterThan(10);
  });
});
