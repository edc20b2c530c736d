import { randomUUID } from 'node:crypto';
import { deleteTenant } from '../../src/domain/tenant';
import { ingest } from '../../src/ingest/ingest';
import { freshFolder } from '../support/folders';
import { byOperator, closeLedgers, makeCustomer, openLedger, streams } from '../support/ledgers';

afterEach(closeLedgers);

const fullBatch = (tenantId: string): string =>
  Array.from({ length: 500 }, (_, at) =>
    JSON.stringify({
      id: randomUUID(),
      tenant_id: tenantId,
      type: 'TokenCreated',
      data: { entityId: `t${at}` },
    }),
  ).join('\n') + '\n';

it('refuses facts of a tenant that another process deletes while they are ingested', async () => {
  const folder = freshFolder();
  const program = await openLedger(folder);
  const other = await openLedger(folder);
  const { tenantId } = await makeCustomer(other);
  const input = async function* (): AsyncGenerator<string> {
    yield fullBatch(tenantId);
    await other.ledger.execute(byOperator(tenantId, deleteTenant()));
    yield fullBatch(tenantId);
  };
  const reasons = new Set<string>();
  const done = await ingest(
    input(),
    {
      ...program,
      streams,
      reached: async () => true,
      shown: async () => ({ revision: -1, has: async () => false }),
    },
    { dryRun: false, onRefused: (_, reason) => reasons.add(reason), onProgress: () => undefined },
  );
  expect(done).toMatchObject({ accepted: 500, refused: 500 });
  expect([...reasons]).toEqual([`tenant ${tenantId} is deleted`]);
});
