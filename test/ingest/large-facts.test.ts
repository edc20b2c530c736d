import { randomUUID } from 'node:crypto';
import { ingest } from '../../src/ingest/ingest';
import { freshFolder } from '../support/folders';
import { closeLedgers, makeCustomer, openLedger, streams } from '../support/ledgers';

afterEach(closeLedgers);

const line = (tenantId: string, more: string): string =>
  `{"id":"${randomUUID()}","tenant_id":"${tenantId}","type":"TokenCreated","data":{"entityId":"a"${more}}}\n`;

/** Short as sent, long as stored: each becomes a one with fifteen zeros. */
const numbers = (count: number): string => `,"n":[${Array.from({ length: count }, () => '1e15').join(',')}]`;

const run = async (lines: (tenantId: string) => readonly string[]) => {
  const one = await openLedger(freshFolder());
  const { tenantId } = await makeCustomer(one);
  const refused: number[] = [];
  const input = async function* (): AsyncGenerator<string> {
    yield* lines(tenantId);
  };
  const done = await ingest(
    input(),
    {
      ...one,
      streams,
      reached: async () => true,
      shown: async () => ({ revision: -1, has: async () => false }),
    },
    { dryRun: false, onRefused: (number) => refused.push(number), onProgress: () => undefined },
  );
  return { done, refused };
};

it('accepts many lines that grow, in as many appends as needed', async () => {
  const { done } = await run((id) => Array.from({ length: 30 }, () => line(id, numbers(10_000))));
  expect(done).toMatchObject({ accepted: 30, refused: 0 });
});
