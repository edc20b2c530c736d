import { MAX_STREAMS_PER_TENANT, openStreams } from '../../src/audit/open-streams';

const INSTANCE = 500;

describe('open streams', () => {
  it('are limited per tenant and per instance, and one that ends makes room', () => {
    const { open } = openStreams();
    const releases = Array.from({ length: INSTANCE }, (_, at) =>
      open(`tenant ${Math.floor(at / MAX_STREAMS_PER_TENANT)}`),
    );
    const refused = (whose: string) => expect.objectContaining({ code: 'too_many_streams', message: whose });
    expect(() => open('tenant 0')).toThrow(
      refused('This Tenant has 20 streams of events open, and cannot have more.'),
    );
    expect(() => open('another')).toThrow(
      refused('This instance has 500 streams of events open, and cannot have more.'),
    );
    releases[0]?.();
    const release = open('another');
    expect(() => open('tenant 0')).toThrow(
      refused('This instance has 500 streams of events open, and cannot have more.'),
    );
    release();
    open('tenant 0')();
  });
});
