import * as fc from 'fast-check';
import { parseAddress, type Address } from '../../src/limits/address';
import { originOf, readTrustedProxies } from '../../src/limits/trusted-proxies';
import { seed, seeded } from '../support/property';

const address = (text: string): Address => parseAddress(text)!;

const origin = (setting: string, peer: string, forwardedFor?: string) => {
  const { address: found, trusted } = originOf(readTrustedProxies(setting)!, address(peer), forwardedFor);
  return [found.counted, trusted];
};

describe('the origin of a request', () => {
  describe.each(['', '0'])('if no proxy is trusted (%j)', (setting) => {
    it('is the peer, whatever is forwarded', () => {
      expect(origin(setting, '192.0.2.9')).toEqual(['192.0.2.9', false]);
      expect(origin(setting, '192.0.2.9', '198.51.100.1')).toEqual(['192.0.2.9', false]);
      expect(origin(setting, '::ffff:192.0.2.9', '198.51.100.1')).toEqual(['192.0.2.9', false]);
    });
  });

  describe('behind a number of hops', () => {
    it.each([
      ['1', undefined, '192.0.2.9'],
      ['1', '', '192.0.2.9'],
      ['1', '198.51.100.1', '198.51.100.1'],
      ['1', '203.0.113.1, 198.51.100.1', '198.51.100.1'],
      ['1', '203.0.113.1,198.51.100.1', '198.51.100.1'],
      ['1', '198.51.100.1:5678', '198.51.100.1'],
      ['1', '203.0.113.1, [2001:db8:1:2::3]:5678', '2001:db8:1:2::/64'],
      ['1', 'x, fe80::1%eth0', 'fe80:0:0:0::/64'],
      ['1', '203.0.113.1, unknown', '192.0.2.9'],
      ['1', '203.0.113.1, ', '192.0.2.9'],
      ['1', '203.0.113.1,,198.51.100.1', '198.51.100.1'],
      ['1', ',,,', '192.0.2.9'],
      ['2', undefined, '192.0.2.9'],
      ['2', '203.0.113.1', '192.0.2.9'],
      ['2', '203.0.113.1, 10.0.0.1', '203.0.113.1'],
      ['2', 'evil, 203.0.113.1, 10.0.0.1', '203.0.113.1'],
      ['2', '203.0.113.1, evil, 10.0.0.1', '192.0.2.9'],
      ['3', '203.0.113.1, 10.0.0.2, 10.0.0.1', '203.0.113.1'],
      ['3', '10.0.0.2, 10.0.0.1', '192.0.2.9'],
    ])('%s, forwarded for %j: %s', (hops, forwardedFor, expected) => {
      expect(origin(hops, '192.0.2.9', forwardedFor)).toEqual([expected, true]);
    });
  });

  describe('behind proxies in these networks', () => {
    const SETTING = '10.0.0.0/8,192.0.2.9, fd00::/8';
    it.each([
      ['198.51.100.7', '203.0.113.1', '198.51.100.7', false],
      ['192.0.2.8', '203.0.113.1', '192.0.2.8', false],
      ['192.0.2.9', undefined, '192.0.2.9', true],
      ['192.0.2.9', '203.0.113.1', '203.0.113.1', true],
      ['::ffff:192.0.2.9', '203.0.113.1', '203.0.113.1', true],
      ['fd12::1', '203.0.113.1', '203.0.113.1', true],
      ['192.0.2.9', '198.51.100.1, 203.0.113.1', '203.0.113.1', true],
      ['192.0.2.9', '198.51.100.1, 203.0.113.1, 10.1.2.3', '203.0.113.1', true],
      ['192.0.2.9', '203.0.113.1, ::ffff:10.1.2.3, fd00::1', '203.0.113.1', true],
      ['192.0.2.9', '10.0.0.2, 10.0.0.1', '10.0.0.2', true],
      ['192.0.2.9', 'evil, 10.0.0.1', '10.0.0.1', true],
      ['192.0.2.9', '203.0.113.1, evil', '192.0.2.9', true],
      ['192.0.2.9', '203.0.113.1,', '192.0.2.9', true],
    ])('%s forwards for %j: %s', (peer, forwardedFor, expected, trusted) => {
      expect(origin(SETTING, peer, forwardedFor)).toEqual([expected, trusted]);
    });

    it.each([
      ['::ffff:10.0.0.0/104', '10.1.2.3', true],
      ['::ffff:10.0.0.0/104', '11.1.2.3', false],
      ['::ffff:10.0.0.1', '10.0.0.1', true],
      ['::ffff:10.0.0.1', '10.0.0.2', false],
      ['0.0.0.0/0', '203.0.113.1', true],
      ['0.0.0.0/0', '2001:db8::1', false],
      ['::/0', '2001:db8::1', true],
      ['2001:db8::/32', '2001:db8:ffff::1', true],
      ['2001:db8::/32', '2001:db9::1', false],
    ])('%s includes %s: %s', (setting, peer, trusted) => {
      expect(origin(setting, peer)[1]).toBe(trusted);
    });
  });

  /** An address that is not one of our proxies, and the proxies, as they would write it. */
  const ipv4 = fc.ipV4().filter((text) => !text.startsWith('10.'));
  const client = fc.oneof(
    ipv4,
    fc.ipV6().filter((text) => !/^(::|fd|0+:)/i.test(text)),
  );
  const written = (text: string, way: number): string => {
    if (!text.includes(':')) return [text, `${text}:80`, ` ${text} `][way % 3]!;
    return [text, `[${text}]`, `[${text}]:443`, `${text}%eth0`][way % 4]!;
  };
  const lie = fc.oneof(
    fc.ipV4(),
    fc.constantFrom(
      '10.0.0.1',
      '10.9.9.9',
      '',
      ' ',
      ',',
      ',,',
      'unknown',
      '127.0.0.1:1',
      '[::1]:1',
      'fe80::1%lo',
    ),
    fc.string({ unit: fc.constantFrom(...Array.from('0123456789abcdef:.%[], ')) }),
  );
  const way = fc.record({
    from: client,
    lies: fc.array(lie, { maxLength: 4 }),
    proxies: fc.array(fc.integer({ min: 1, max: 250 }), { minLength: 1, maxLength: 4 }),
    ways: fc.array(fc.nat(11), { minLength: 4, maxLength: 4 }),
  });

  it(seeded('is the client, whatever it sends itself, as long as each proxy appends its peer'), () => {
    fc.assert(
      fc.property(way, ({ from, lies, proxies, ways }) => {
        const peers = [from, ...proxies.map((host) => `10.0.0.${host}`)];
        const peer = peers.at(-1)!;
        const appended = peers.slice(0, -1).map((text, hop) => written(text, ways[hop] ?? 0));
        const header = [...lies, ...appended].join(',');
        const expected = address(from).counted;
        expect(origin(String(proxies.length), peer, header)).toEqual([expected, true]);
        expect(origin('10.0.0.0/24', peer, header)).toEqual([expected, true]);
        expect(origin('', peer, header)).toEqual([peer, false]);
      }),
      { seed, numRuns: 2_000 },
    );
  });
});
