import * as fc from 'fast-check';
import { parseBorder, parseMoment } from '../../src/domain/moment';
import { seed, seeded } from '../support/property';

describe('a moment', () => {
  it.each([
    ['2026-02-03T04:05:06.789Z', '2026-02-03T04:05:06.789Z'],
    ['2026-02-03T04:05:06Z', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03T04:05Z', '2026-02-03T04:05:00.000Z'],
    ['2026-02-03t04:05:06z', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03T04:05:06+02:00', '2026-02-03T02:05:06.000Z'],
    ['2026-02-03T04:05:06+0230', '2026-02-03T01:35:06.000Z'],
    ['2026-02-03T04:05:06-14:00', '2026-02-03T18:05:06.000Z'],
    ['2026-02-03T04:05:06', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03T04:05', '2026-02-03T04:05:00.000Z'],
    ['2026-02-03', '2026-02-03T00:00:00.000Z'],
    ['2026-02-03T04:05:06.1Z', '2026-02-03T04:05:06.100Z'],
    ['2026-02-03T04:05:06.123456789Z', '2026-02-03T04:05:06.123Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['0001-01-01', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s is %s', (text, expected) => {
    expect(parseMoment(text)).toBe(expected);
  });

  it.each([
    '',
    'now',
    '2026',
    '2026-02',
    '2026-2-3',
    '20260203',
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
  ])('%j is none', (text) => {
    expect(parseMoment(text)).toBeUndefined();
  });

  it(seeded('of any form comes out as the same moment, in a form whose text order is its order'), () => {
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
  ])('%s is %s', (text, expected) => {
    expect(parseBorder(text)).toBe(expected);
  });

  it('that is no moment is none', () => {
    expect(parseBorder('2026-02-30T04:05:06.1234Z')).toBeUndefined();
  });
});
