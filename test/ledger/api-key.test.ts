import * as fc from 'fast-check';
import { createHash, randomUUID } from 'node:crypto';
import { digestOf, makeKey, tenantOfKey } from '../../src/ledger/api-key';
import { seed, seeded } from '../support/property';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const LOWEST = '00000000-0000-0000-0000-000000000000';
const HIGHEST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

describe('an API key', () => {
  it('has 59 characters: key_, 22 for the tenant, 27 random and 6 for the checksum', () => {
    for (let i = 0; i < 100; i += 1) expect(makeKey(randomUUID())).toMatch(/^key_[0-9A-Za-z]{55}$/);
  });

  it.each([
    [LOWEST, '0000000000000000000000'],
    ['00000000-0000-0000-0000-00000000003d', '000000000000000000000z'],
    ['00000000-0000-0000-0000-00000000003e', '0000000000000000000010'],
    [HIGHEST, '7n42DGM5Tflk9n8mt7Fhc7'],
  ])('encodes the tenant %s as %s', (tenantId, text) => {
    const key = makeKey(tenantId);
    expect(key.slice(4, 26)).toBe(text);
    expect(tenantOfKey(key)).toBe(tenantId);
  });

  it(seeded('names its tenant, whichever it is'), () => {
    fc.assert(
      fc.property(fc.oneof(fc.uuid(), fc.constantFrom(LOWEST, HIGHEST)), (tenantId) => {
        expect(tenantOfKey(makeKey(tenantId))).toBe(tenantId);
      }),
      { seed },
    );
  });

  it('is never the same twice', () => {
    const keys = Array.from({ length: 1_000 }, () => makeKey(LOWEST));
    expect(new Set(keys).size).toBe(1_000);
    const used = new Set(keys.flatMap((key) => Array.from(key.slice(26, 53))));
    expect([...used].toSorted().join('')).toBe(ALPHABET);
  });

  it.each([randomUUID(), LOWEST, HIGHEST])(
    'of %s is refused with any single character changed',
    (tenantId) => {
      const key = makeKey(tenantId);
      const others = `${ALPHABET}_- ä`;
      let changes = 0;
      for (let at = 0; at < key.length; at += 1)
        for (const other of others) {
          if (other === key[at]) continue;
          changes += 1;
          expect(tenantOfKey(`${key.slice(0, at)}${other}${key.slice(at + 1)}`)).toBeUndefined();
        }
      expect(changes).toBe(key.length * (others.length - 1));
    },
  );

  it('is refused with two adjacent characters swapped', () => {
    const key = makeKey(randomUUID());
    for (let at = 0; at < key.length - 1; at += 1) {
      if (key[at] === key[at + 1]) continue;
      expect(tenantOfKey(`${key.slice(0, at)}${key[at + 1]}${key[at]}${key.slice(at + 2)}`)).toBeUndefined();
    }
  });

  it('is refused in any other form', () => {
    const key = makeKey(randomUUID());
    const others = [
      '',
      'key_',
      key.slice(1),
      key.slice(0, -1),
      `${key}0`,
      ` ${key}`,
      `${key}\n`,
      key.toUpperCase(),
      key.slice(4),
    ];
    for (const other of others) expect(tenantOfKey(other)).toBeUndefined();
  });

  it('is refused if its tenant exceeds 128 bits, even with a correct checksum', () => {
    // Made by hand: 22 times z exceeds the highest id; the checksum is the CRC-32 of all before it.
    expect(tenantOfKey('key_zzzzzzzzzzzzzzzzzzzzzz0000000000000000000000000002tUHJt')).toBeUndefined();
  });

  it('is stored only as its SHA-256', () => {
    const key = makeKey(LOWEST);
    expect(digestOf(key)).toBe(createHash('sha256').update(key).digest('hex'));
    expect(digestOf(key)).toMatch(/^[0-9a-f]{64}$/);
  });
});
