import { readModelStoreOf, storeOf, withoutSecrets } from '../../src/app/log-address';

const DATA_DIR = '/data';

describe('the displayed address of a store', () => {
  it.each([
    ['esdb://h:2113?tls=false', 'esdb://h:2113?tls=false'],
    ['esdb://admin:s3cret@h:2113?tls=false', 'esdb://…@h:2113?tls=false'],
    ['mongodb://u:s3cret@a,b:27018/ledger?tls=true', 'mongodb://…@a,b:27018/ledger?tls=true'],
    [
      'mongodb://h/?tls=true&tlsCertificateKeyFilePassword=s3cret&proxyPassword=s3cret&w=1',
      'mongodb://h/?tls=true&tlsCertificateKeyFilePassword=…&proxyPassword=…&w=1',
    ],
    [
      'mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:s3cret',
      'mongodb://h/?authMechanismProperties=…',
    ],
  ])('%s contains no secrets', (address, shown) => {
    expect(withoutSecrets(address)).toBe(shown);
  });

  it.each([
    ['', '/data/events.db'],
    ['esdb://admin:s3/cr@et@h:2113,i:2113?tls=false', 'esdb://h:2113,i:2113'],
    ['esdb+discover://h', 'esdb+discover://h'],
  ])('%s is the event log at %s', (EVENTSTORE_URL, shown) => {
    expect(storeOf({ DATA_DIR, EVENTSTORE_URL })).toBe(shown);
  });

  it.each([
    ['', '/data/read-models'],
    ['mongodb://127.0.0.1:27017', 'mongodb://127.0.0.1:27017'],
    ['mongodb+srv://u:s3/cr@et@h/ledger?tlsCertificateKeyFilePassword=x', 'mongodb+srv://h/ledger'],
  ])('%s has the read models at %s', (MONGODB_URL, shown) => {
    expect(readModelStoreOf({ DATA_DIR, MONGODB_URL })).toBe(shown);
  });
});
