import * as fc from 'fast-check';
import { randomUUID, createHash } from 'node:crypto';
import {
  isWellFormed,
  looksLikeKey,
  masked,
  MAX_NAME_LENGTH,
  mustBeName,
  nameFault,
  parseBound,
  parseMoment,
} from '../../src/domain/texts';
import { makeKey, makeServiceKey } from '../../src/ledger/api-key';
import { anyCharacter } from '../support/any-character';
import { seed, seeded } from '../support/property';

describe('a name', () => {
  it.each([
    'x',
    ' x ',
    'x'.repeat(200),
    '👩'.repeat(100),
    'ä'.repeat(200),
    '世界',
    '\u200b',
    '__proto__',
    'line\nbreak',
  ])('may be %j', (name) => {
    expect(nameFault(name)).toBeUndefined();
    expect(() => mustBeName(name)).not.toThrow();
  });

  it.each<[string, RegExp]>([
    ['', /blank/],
    [' ', /blank/],
    ['\t\n\r', /blank/],
    ['\u00a0\u2003\u3000\ufeff', /blank/],
    [' '.repeat(201), /blank/],
    ['x'.repeat(201), /at most 200/],
    [`${'👩'.repeat(100)}x`, /at most 200/],
    ['👩'.repeat(101), /at most 200/],
    ['\ud800', /lone surrogate/],
    ['x\udc00x', /lone surrogate/],
    ['\udc00\ud800', /lone surrogate/],
  ])('may not be %j', (name, reason) => {
    expect(nameFault(name)).toMatch(reason);
    expect(() => mustBeName(name)).toThrow(expect.objectContaining({ code: 'validation_failed' }));
  });

  it('is at most 200 UTF-16 units long', () => expect(MAX_NAME_LENGTH).toBe(200));
});

const tenantKey = fc.uuid().map(makeKey);
const key = fc.oneof(tenantKey, fc.nat().map(makeServiceKey));
const around = fc.stringMatching(/^[ /?&="{}.,:-]{0,10}$/);

describe('well-formed text', () => {
  it('is looked for however deep it is', () => {
    const inside = (text: string): unknown => {
      let value: unknown = text;
      for (let level = 0; level < 100_000; level += 1) value = level % 2 === 0 ? [value] : { a: value };
      return value;
    };
    expect([isWellFormed(inside('a')), isWellFormed(inside('\ud800'))]).toEqual([true, false]);
    expect(isWellFormed({ '\ud800': 1 })).toBe(false);
  });
});

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
    const part = fc.stringMatching(/^(key_[0-9a-zA-Z]{40,60}|svc_[0-9a-zA-Z]{30,40})$/);
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
    'svc_0123456789abcdefghijABCDEFGHI',
    'my_svc_0123456789abcdefghijABCDEFGHIJ',
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
        expect(masked(`${before}${text}${after}`)).toBe(`${before}${text.slice(0, 4)}***${after}`);
      }),
      { seed },
    );
  });

  it(seeded('includes every key with one character changed, and every part that would do harm'), () => {
    fc.assert(
      fc.property(
        tenantKey,
        fc.nat(58),
        fc.constantFrom('x', 'X', '7', '-', '.', '%5F'),
        (text, at, other) => {
          const changed = `${text.slice(0, at)}${other}${text.slice(at + 1)}`;
          // Each half of a key is too short to guess the rest from, and may look like anything.
          for (const part of text.match(/.{41}/g) ?? [])
            if (at < 12 || at > 46) expect(masked(`/${changed}/`)).not.toContain(part);
          expect(masked(text.slice(4))).toBe('key_***');
          expect(masked(text.slice(0, 50))).toBe('key_***');
        },
      ),
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
    const part = fc.stringMatching(/^(key|svc)_[0-9a-zA-Z]{16}$/);
    fc.assert(
      fc.property(text, part, text, (before, shortest, after) => {
        const hidden = `${shortest.slice(0, 4)}***`;
        expect(masked(`${before}${shortest} ${after}`)).toBe(`${before}${hidden} ${after}`);
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

describe('a moment', () => {
  it.each([
    ['2026-02-03T04:05:06.789Z', '2026-02-03T04:05:06.789Z'],
    ['2026-02-03T04:05:06Z', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03T04:05Z', '2026-02-03T04:05:00.000Z'],
    ['2026-02-03t04:05:06z', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03T04:05:06+02:00', '2026-02-03T02:05:06.000Z'],
    ['2026-02-03T04:05:06-14:00', '2026-02-03T18:05:06.000Z'],
    ['2026-02-03T04:05:06', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03T04:05', '2026-02-03T04:05:00.000Z'],
    ['2026-02-03', '2026-02-03T00:00:00.000Z'],
    ['2026-02-03T04:05:06.1Z', '2026-02-03T04:05:06.100Z'],
    ['2026-02-03T04:05:06.123456789Z', '2026-02-03T04:05:06.123Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['0001-01-01', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s is parsed as %s', (text, expected) => {
    expect(parseMoment(text)).toBe(expected);
  });

  it.each([
    '',
    'now',
    '2026',
    '2026-02',
    '2026-2-3',
    '20260203',
    '20260203T040506Z',
    '2026-02-03T040506Z',
    '20260203T04:05:06Z',
    '2026-02-03T04:05:06,5Z',
    '2026-02-03T04:05:06+0230',
    '2026-02-03T04:05:06+01',
    '2026-02-03T04:05.5Z',
    '2026-02-03T04:05:06+01:',
    '2026-02-30',
    '2026-02-29',
    '2026-04-31',
    '2026-13-01',
    '2026-00-10',
    '2026-01-00',
    '2026-02-03T',
    '2026-02-03 04:05:06',
    '2026-02-03T25:00:00Z',
    '2026-02-03T04:60:00Z',
    '2026-02-03T04:05:60Z',
    '2026-02-03T04:05:06.Z',
    '2026-02-03T04:05:06.1234567890Z',
    '2026-02-03T04:05:06+2',
    '2026-02-03T04:05:06+25:00',
    '2026-02-03T04:05:06+02:60',
    '2026-02-03Z',
    '2026-02-03T04:05:06ZZ',
    ' 2026-02-03',
    '2026-02-03\n',
    '+002026-02-03',
    '-2026-02-03',
    '1770091506',
    '9999-12-31T23:59:59-01:00',
    '0000-01-01T00:00:00+01:00',
  ])('%j is refused', (text) => {
    expect(parseMoment(text)).toBeUndefined();
  });

  it(seeded('in any form is parsed as the same moment, in a form that sorts as text'), () => {
    const date = fc.date({ min: new Date('0001-01-02'), max: new Date('9999-12-30'), noInvalidDate: true });
    fc.assert(
      fc.property(date, fc.integer({ min: -14 * 60, max: 14 * 60 }), (moment, offset) => {
        const local = new Date(moment.getTime() + offset * 60_000).toISOString().slice(0, -1);
        const two = (n: number): string => String(Math.trunc(Math.abs(n))).padStart(2, '0');
        const zone = `${offset < 0 ? '-' : '+'}${two(offset / 60)}:${two(offset % 60)}`;
        expect(parseMoment(`${local}${zone}`)).toBe(moment.toISOString());
        expect(parseMoment(moment.toISOString())).toBe(moment.toISOString());
      }),
      { seed },
    );
  });
});

describe('a border', () => {
  it.each([
    ['2026-02-03', '2026-02-03T00:00:00.000Z'],
    ['2026-02-03T04:05:06.123Z', '2026-02-03T04:05:06.123Z'],
    ['2026-02-03T04:05:06.123000Z', '2026-02-03T04:05:06.123Z'],
    ['2026-02-03T04:05:06.123001Z', '2026-02-03T04:05:06.124Z'],
    ['2026-02-03T04:05:59.999999999+02:00', '2026-02-03T02:06:00.000Z'],
    ['9999-12-31T23:59:59.9999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s is parsed as %s', (text, expected) => {
    expect(parseBound(text)).toBe(expected);
  });

  it('that is not a moment is refused', () => {
    expect(parseBound('2026-02-30T04:05:06.1234Z')).toBeUndefined();
  });
});
