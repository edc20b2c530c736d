import { threadMs } from '../../src/async/clock';
import { earlierRequest } from '../../src/ledger/fold';
import { freshFolder } from '../support/folders';
import {
  closeLedgers,
  fillStream,
  idempotent,
  makeCustomer,
  openLedger,
  rename,
  soon,
  streams,
  type Customer,
  type OpenLedger,
} from '../support/ledgers';

afterEach(closeLedgers);

const MAX_REQUESTS = 10_000;

const requestOf = (key: string) => ({ key, scope: 'PUT /tenants/self' });

const foundRequest = async (
  program: OpenLedger,
  { tenantId, applicationId }: Customer,
  key: string,
  request = requestOf(key),
) => {
  const { requests } = await program.folds.asOf(tenantId, threadMs(), soon());
  const repeatable = { tenantId, applicationId, request };
  const revision = requests.find(applicationId, request);
  return revision === undefined
    ? undefined
    : earlierRequest({ log: program.log, streams }, repeatable, revision);
};

describe('remembered requests', () => {
  it('are found again by a restarted program, and take little memory', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, 1_200);
    const again = await openLedger(folder);
    expect(await foundRequest(again, customer, 'key-1200')).toBeUndefined();
    expect(await foundRequest(again, customer, 'key-0')).toMatchObject({ hash: 'body', revision: 3 });
    expect(await foundRequest(again, customer, 'key-1199')).toMatchObject({ revision: 1_202 });
    const { requests } = await again.folds.asOf(customer.tenantId, -Infinity, soon());
    expect(requests.bytes()).toBe(1_200 * 64);
  });

  it('are compared with their events, whatever their digests are', async () => {
    const program = await openLedger(freshFolder());
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, 20);
    const { tenantId, applicationId } = customer;
    const at = (key: string, revision: number) =>
      earlierRequest(
        { log: program.log, streams },
        { tenantId, applicationId, request: requestOf(key) },
        revision,
      );
    expect(await at('key-7', 10)).toMatchObject({ revision: 10, events: [{ revision: 10 }] });
    expect(await at('key-8', 10)).toBeUndefined();
    expect(await at('key-8', 2)).toBeUndefined();
    expect(await at('key-8', 99)).toBeUndefined();
  });

  it('are exactly the newest 10,000, whether here or after a restart', async () => {
    const folder = freshFolder();
    const program = await openLedger(folder);
    const customer = await makeCustomer(program);
    await fillStream(program.log, customer, MAX_REQUESTS + 700);
    const border = async (opened: OpenLedger) => [
      await foundRequest(opened, customer, 'key-699'),
      (await foundRequest(opened, customer, 'key-700'))?.revision,
    ];
    expect(await border(program)).toEqual([undefined, 703]);
    const again = await openLedger(folder);
    expect(await border(again)).toEqual([undefined, 703]);
    // A forgotten one may come again, and is then the newest.
    await again.ledger.execute(rename(customer, 'Again', idempotent('key-699')));
    expect(await foundRequest(again, customer, 'key-700')).toBeUndefined();
    expect(await foundRequest(program, customer, 'key-699')).toMatchObject({ revision: MAX_REQUESTS + 703 });
  });
});
