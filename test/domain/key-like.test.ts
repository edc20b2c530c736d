import * as fc from 'fast-check';
import { randomUUID, createHash } from 'node:crypto';
import { looksLikeKey, masked, nameFault } from '../../src/domain/texts';
import { makeKey } from '../../src/ledger/api-key';
import { anyCharacter } from '../support/any-character';
import { seed, seeded } from '../support/property';

const key = fc.uuid().map(makeKey);
const around = fc.stringMatching(/^[ /?&="{}.,:-]{0,10}$/);

describe('text that is refused as a key', () => {
  const anything = fc.string({ unit: anyCharacter, maxLength: 40 });

  it(seeded('includes every text with a key in it, at any place'), () => {
    fc.assert(
      fc.property(key, anything, anything, (text, before, after) => {
        expect(looksLikeKey(`${before}${text}${after}`)).toBe(true);
      }),
      { seed },
    );
  });

  it(seeded('includes a key that was truncated or mistyped, at the start of a word'), () => {
    const part = fc.stringMatching(/^key_[0-9a-zA-Z]{40,60}$/);
    fc.assert(
      fc.property(part, fc.constantFrom('', ' ', '-', '/', '(', 'My '), (text, before) => {
        expect(looksLikeKey(`${before}${text}`)).toBe(true);
      }),
      { seed },
    );
  });

  it(seeded('includes no name that somebody chose'), () => {
    const letter = fc.constantFrom('r', 'n', 'A', '7', '_', 'ü', 'キ');
    const inside = fc.tuple(letter, fc.stringMatching(/^key_[0-9a-zA-Z]{0,80}$/)).map((two) => two.join(''));
    const short = fc.stringMatching(/^key_[0-9a-zA-Z]{0,39}$/);
    const word = fc.oneof(inside, short, fc.stringMatching(/^[0-9a-zA-Z]{1,100}$/), fc.string());
    const name = fc.array(word, { maxLength: 4 }).map((words) => words.join(' '));
    fc.assert(
      fc.property(name, (text) => {
        expect(looksLikeKey(text)).toBe(false);
      }),
      { seed, numRuns: 1_000 },
    );
  });

  it.each([
    'Turkey_Istanbul2026Production',
    'turkey_0123456789abcdefghijABCDEFGHIJ0123456789abcdefghij',
    'key_refused',
    'key_0123456789abcdefghijABCDEFGHIJ012345678',
    'KEY_0123456789abcdefghijABCDEFGHIJ0123456789',
    'aB3'.repeat(20),
  ])('does not include %s', (text) => {
    expect(looksLikeKey(text)).toBe(false);
    expect(nameFault(text)).toBeUndefined();
  });
});

describe('text that might be a key', () => {
  it(seeded('includes every key, at any place'), () => {
    fc.assert(
      fc.property(key, around, around, (text, before, after) => {
        expect(masked(`${before}${text}${after}`)).toBe(`${before}key_***${after}`);
      }),
      { seed },
    );
  });

  it(seeded('includes every key with one character changed, and every part that would do harm'), () => {
    fc.assert(
      fc.property(key, fc.nat(58), fc.constantFrom('x', 'X', '7', '-', '.', '%5F'), (text, at, other) => {
        const changed = `${text.slice(0, at)}${other}${text.slice(at + 1)}`;
        // Each half of a key is too short to guess the rest from, and may look like anything.
        for (const part of text.match(/.{41}/g) ?? [])
          if (at < 12 || at > 46) expect(masked(`/${changed}/`)).not.toContain(part);
        expect(masked(text.slice(4))).toBe('key_***');
        expect(masked(text.slice(0, 50))).toBe('key_***');
      }),
      { seed },
    );
  });

  it('does not include a trace id, which was accepted before', () => {
    const line = JSON.stringify({ trace_id: 'aB3'.repeat(20), path: 'aB3'.repeat(20) });
    expect(JSON.parse(masked(line))).toEqual({ trace_id: 'aB3'.repeat(20), path: 'key_***' });
    const nested = JSON.stringify({ path: `/"trace_id":"${'aB3'.repeat(20)}"` });
    expect(masked(nested)).not.toContain('aB3aB3');
  });

  it(seeded('includes the shortest part that would do harm, at any place in a longer text'), () => {
    const text = fc.stringMatching(/^([a-z]{0,19}[ ."-]{1,2}){0,5}$/);
    const part = fc.stringMatching(/^key_[0-9a-zA-Z]{16}$/);
    fc.assert(
      fc.property(text, part, text, (before, shortest, after) => {
        expect(masked(`${before}${shortest} ${after}`)).toBe(`${before}key_*** ${after}`);
        expect(masked(`${before}${after}`)).toBe(`${before}${after}`);
      }),
      { seed },
    );
  });

  it.each([
    'key_refused',
    'key_id',
    'my-key_1',
    randomUUID(),
    createHash('sha256').update('x').digest('hex'),
    createHash('sha256').update('x').digest('hex').toUpperCase(),
    'x'.repeat(128),
    'Ünï & Co',
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    '2026-01-31T12:00:00.000Z',
    '/tenants/self/reports/usage',
  ])('does not include %s', (text) => {
    expect(looksLikeKey(text)).toBe(false);
    expect(masked(text)).toBe(text);
  });

  it.each(['\n', '\t', '\u0001', '"', '\\'])('leaves valid JSON when it is masked after %j', (before) => {
    const run = 'aB3'.repeat(18);
    expect(JSON.parse(masked(JSON.stringify({ [`${before}${run}`]: `${before}${run}` })))).toEqual({
      [`${before}key_***`]: `${before}key_***`,
    });
  });
});
