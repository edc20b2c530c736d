import { streamLimits, type StreamUse } from '../../src/audit/stream-limits';

describe('open streams', () => {
  const refused = (message: string) =>
    expect.objectContaining({ code: 'too_many_streams', message, more: { retryAfter: 10 } });

  it.each([
    ['export', 4, 'This Tenant has 4 exports under way, and cannot have more.'],
    ['follow', 20, 'This Tenant has 20 followed streams of events open, and cannot have more.'],
  ] as const)('are limited per tenant, as %s to %i, and one that ends makes room', (use, limit, message) => {
    const open = streamLimits();
    const releases = Array.from({ length: limit }, () => open('one', use));
    expect(() => open('one', use)).toThrow(refused(message));
    open('other', use);
    open('one', use === 'export' ? 'follow' : 'export');
    releases[0]?.();
    open('one', use);
    expect(() => open('one', use)).toThrow(refused(message));
  });

  it('are limited to 500 per instance', () => {
    const open = streamLimits();
    const use: StreamUse = 'follow';
    const [release] = Array.from({ length: 500 }, (_, at) => open(`tenant ${at}`, use));
    const message = 'This instance has 500 streams of events open, and cannot have more.';
    expect(() => open('another', use)).toThrow(refused(message));
    release?.();
    open('another', use);
    expect(() => open('tenant 0', use)).toThrow(refused(message));
  });
});
