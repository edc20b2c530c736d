import * as fc from 'fast-check';
import { parseAddress, parseForwarded } from '../../src/limits/address';
import { seed, seeded } from '../support/property';

describe('an address is counted', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:0201', '192.0.2.1'],
    ['0000:0000:0000:0000:0000:ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:0:0', '0.0.0.0'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:DB8:0:0:ffff:ffff:ffff:ffff', '2001:db8:0:0::/64'],
    ['2001:0db8:0000:0001::', '2001:db8:0:1::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:192.0.2.1', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['::192.0.2.1', '0:0:0:0::/64'],
    ['::ffff:0:192.0.2.1', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['1::ffff:192.0.2.1', '1:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::ffff:192.0.2.1%1', '192.0.2.1'],
  ])('%s as %s', (text, counted) => {
    expect(parseAddress(text)?.counted).toBe(counted);
  });

  it.each([
    '',
    ' ',
    'x',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.256',
    '1.2.3.4 ',
    '0x7f.1',
    '2130706433',
    ':::',
    '1:2:3',
    '2001:db8::1::2',
    '[::1]',
    '::1/64',
    '%eth0',
    '1.2.3.4%eth0',
    '12345::',
    '::ffff:1.2.3',
  ])('not at all: %j', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  it.each([
    ['192.0.2.1:443', '192.0.2.1'],
    [' 192.0.2.1\t', '192.0.2.1'],
    ['[2001:db8::1]', '2001:db8:0:0::/64'],
    ['[2001:db8::1]:443', '2001:db8:0:0::/64'],
    ['[fe80::1%25eth0]:443', 'fe80:0:0:0::/64'],
    ['[::ffff:192.0.2.1]:1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
  ])('as forwarded: %j', (element, counted) => {
    expect(parseForwarded(element)?.counted).toBe(counted);
  });

  it.each([
    '',
    'unknown',
    '_hidden',
    '192.0.2.1:',
    '192.0.2.1:x',
    '192.0.2.1:123456',
    '[192.0.2.1]',
    '[192.0.2.1]:1',
    '[::1',
    '::1]',
    '[::1]x',
    '[::1]:',
    '[]',
    '"192.0.2.1"',
    'for=192.0.2.1',
    '192.0.2.1;x',
    '[[::1]]',
  ])('not as forwarded: %j', (element) => {
    expect(parseForwarded(element)).toBeUndefined();
  });

  /** The URL parser also knows addresses, and shares nothing with ours. It abbreviates zeros. */
  const byUrlParser = (text: string): string => {
    const host = new URL(`http://[${text}]/`).hostname.slice(1, -1);
    const [head = '', tail] = host.split('::');
    const parts = (half: string): string[] => (half === '' ? [] : half.split(':'));
    const before = parts(head);
    const after = parts(tail ?? '');
    while (tail !== undefined && before.length + after.length < 8) before.push('0');
    const groups = [...before, ...after];
    const mapped = /^0:0:0:0:0:ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(groups.join(':'));
    if (mapped === null) return `${groups.slice(0, 4).join(':')}::/64`;
    const bits = Number(`0x${mapped[1]!.padStart(4, '0')}${mapped[2]!.padStart(4, '0')}`);
    return [bits >>> 24, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255].join('.');
  };

  /** Many zeros, so that there is something to abbreviate, and mapped addresses, which are too rare by chance. */
  const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.integer({ min: 0, max: 0xffff }));
  const groups = fc.oneof(
    fc.array(group, { minLength: 8, maxLength: 8 }),
    fc.tuple(group, group).map(([high, low]) => [0, 0, 0, 0, 0, 0xffff, high, low]),
  );
  const spelled = fc
    .record({
      groups,
      from: fc.nat(8),
      length: fc.nat(8),
      padded: fc.boolean(),
      upper: fc.boolean(),
      dotted: fc.boolean(),
    })
    .map(({ groups: all, from, length, padded, upper, dotted }) => {
      const texts = all.map((value) => value.toString(16).padStart(padded ? 4 : 1, '0'));
      const [high = 0, low = 0] = all.slice(6);
      const end = dotted ? [[high >> 8, high & 255, low >> 8, low & 255].join('.')] : texts.slice(6);
      const whole = [...texts.slice(0, 6), ...end];
      let zeros = 0;
      while (from + zeros < Math.min(6, from + length) && all[from + zeros] === 0) zeros += 1;
      const text =
        zeros === 0
          ? whole.join(':')
          : `${whole.slice(0, from).join(':')}::${whole.slice(from + zeros).join(':')}`;
      return upper ? text.toUpperCase() : text;
    });

  it(seeded('however it is written, as another parser reads it'), () => {
    fc.assert(
      fc.property(spelled, (text) => {
        expect(parseAddress(text)?.counted).toBe(byUrlParser(text));
      }),
      { seed, numRuns: 2_000 },
    );
  });

  it(seeded('or not at all, whatever the text'), () => {
    const characters = fc.string({ unit: fc.constantFrom(...Array.from('0123456789abcdef:.%[]/ x')) });
    fc.assert(
      fc.property(fc.oneof(characters, fc.string()), (text) => {
        const found = parseForwarded(text)?.counted ?? '';
        expect(found).toMatch(/^(|([0-9]{1,3}\.){3}[0-9]{1,3}|([0-9a-f]{1,4}:){4}:\/64)$/);
      }),
      { seed, numRuns: 2_000 },
    );
  });
});
