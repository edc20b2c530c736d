import { randomUUID } from 'node:crypto';
import { addKey, regenerateKey } from '../../src/domain/application-keys';
import { deleteApplication } from '../../src/domain/applications';
import { formatGate } from '../../src/event-log/format-gate';
import { digestOf } from '../../src/ledger/api-key';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import {
  byKey,
  byOperator,
  closeLedgers,
  idempotent,
  makeCustomer,
  openLedger,
  soon,
  streams,
  type Customer,
} from '../support/ledgers';
import { refusedWith } from '../support/waiting';

afterEach(closeLedgers);

const keyOf = (name?: string) => ({
  keyId: randomUUID(),
  digest: digestOf(randomUUID()),
  at: new Date().toISOString(),
  ...(name === undefined ? {} : { name }),
});
const withName = ({ applicationId }: Customer) => addKey(applicationId, keyOf('Nightly import'));

/** Two programs on one log that agree on its format. */
const given = async () => {
  let format = 1;
  const [folder, around] = [
    freshFolder(),
    (log: Parameters<typeof formatGate>[0]) => formatGate({ ...log, format: async () => format }),
  ];
  const [program, other] = [await openLedger(folder, around), await openLedger(folder, around)];
  const customer = await makeCustomer(program);
  const history = () => eventsOf(program.log.readStream(streams.tenant(customer.tenantId)));
  return { program, other, customer, history, raise: () => (format = 2) };
};

describe('a decision whose event is held back', () => {
  it('is refused and leaves no trace, and the same request is carried out once the format is raised', async () => {
    const { program, customer, history, raise } = await given();
    const before = await history();
    const request = { ...byKey(customer, withName(customer)), ...idempotent('request-1') };
    expect(await refusedWith(program.ledger.execute(request))).toBe('upgrade_unfinished');
    expect(await history()).toEqual(before);
    raise();
    const { events } = await program.ledger.execute(request);
    expect(events).toMatchObject([{ type: 'KeyAdded', data: { name: 'Nightly import' } }]);
    expect((await history()).at(-1)?.metadata).toMatchObject({ version: 2 });
  });

  it('is refused only if it needs the event: events that older programs can read are still written', async () => {
    const { program, customer, history } = await given();
    const { applicationId } = customer;
    const execute = (decide: Parameters<typeof byKey>[1]) => program.ledger.execute(byKey(customer, decide));
    await execute(addKey(applicationId, keyOf()));
    expect((await history()).at(-1)).toMatchObject({ type: 'KeyAdded', metadata: { version: 1 } });
    expect(await refusedWith(execute(regenerateKey(applicationId, keyOf(), 60)))).toBe('upgrade_unfinished');
    await execute(regenerateKey(applicationId, keyOf(), 0));
  });

  it('is refused for the reason at the head of the stream, if there is one there', async () => {
    const { program, other, customer } = await given();
    await other.ledger.stateOf(customer.tenantId, soon());
    await program.ledger.execute(byOperator(customer.tenantId, deleteApplication(customer.applicationId)));
    const adding = other.ledger.execute(byOperator(customer.tenantId, withName(customer)));
    expect(await refusedWith(adding)).toBe('application_not_found');
  });
});
