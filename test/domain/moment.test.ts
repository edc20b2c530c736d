import * as fc from 'fast-check';
import { parseBound, parseMoment } from '../../src/domain/moment';
import { seed, seeded } from '../support/property';

describe('a moment', () => {
  it.each([
    ['2026-02-03T04:05:06Z', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03t04:05:06z', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03T04:05:06+02:00', '2026-02-03T02:05:06.000Z'],
    ['2026-02-03T04:05:06+0230', '2026-02-03T01:35:06.000Z'],
    ['2026-02-03T04:05:06', '2026-02-03T04:05:06.000Z'],
    ['2026-02-03', '2026-02-03T00:00:00.000Z'],
    ['2026-02-03T04:05:06.1Z', '2026-02-03T04:05:06.100Z'],
    ['2026-02-03T04:05:06.123456789Z', '2026-02-03T04:05:06.123Z'],
    ['2026-02-03T04:05:06+01', '2026-02-03T03:05:06.000Z'],
    ['2026-02-03T04:05+01', '2026-02-03T03:05:00.000Z'],
    ['2026-02-03T04:05:06,123456+01', '2026-02-03T03:05:06.123Z'],
    ['20261115T1613Z', '2026-11-15T16:13:00.000Z'],
    ['20261115t161306.25z', '2026-11-15T16:13:06.250Z'],
    ['20261115T161306,25+0130', '2026-11-15T14:43:06.250Z'],
    ['20261115T161306-01:00', '2026-11-15T17:13:06.000Z'],
    ['20261115', '2026-11-15T00:00:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['0001-01-01', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s is parsed as %s', (text, expected) => {
    expect(parseMoment(text)).toBe(expected);
  });

  it.each([
    '',
    '2026',
    '2026-2-3',
    '20260230',
    '2026020',
    '202602-03',
    '2026-02-03T040506Z',
    '20260203T04:05:06Z',
    '20260203T04Z',
    '2026-02-03T04:05,5Z',
    '2026-02-03T04:05:06+010',
    '2026-02-29',
    '2026-13-01',
    '2026-01-00',
    '2026-02-03T',
    '2026-02-03 04:05:06',
    '2026-02-03T25:00:00Z',
    '2026-02-03T04:05:60Z',
    '2026-02-03T04:05:06.1234567890Z',
    '2026-02-03T04:05:06+2',
    '2026-02-03T04:05:06+25:00',
    '2026-02-03T04:05:06+02:60',
    '2026-02-03Z',
    ' 2026-02-03',
    '2026-02-03\n',
    '+002026-02-03',
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
        const basic = `${local}${zone}`.replaceAll(/(?<=^.{0,8})-|:/g, '');
        expect(parseMoment(basic)).toBe(moment.toISOString());
        expect(parseMoment(basic.replace('.', ','))).toBe(moment.toISOString());
        expect(parseMoment(moment.toISOString())).toBe(moment.toISOString());
      }),
      { seed },
    );
  });
});

describe('a border', () => {
  it.each([
    ['2026-02-03', '2026-02-03T00:00:00.000Z'],
    ['2026-02-03T04:05:06.123000Z', '2026-02-03T04:05:06.123Z'],
    ['2026-02-03T04:05:06.123001Z', '2026-02-03T04:05:06.124Z'],
    ['2026-02-03T04:05:06,123001Z', '2026-02-03T04:05:06.124Z'],
    ['2026-02-03T04:05:59.999999999+02:00', '2026-02-03T02:06:00.000Z'],
    ['9999-12-31T23:59:59.9999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s is parsed as %s', (text, expected) => {
    expect(parseBound(text)).toBe(expected);
  });

  it('that is not a moment is refused', () => {
    expect(parseBound('2026-02-30T04:05:06.1234Z')).toBeUndefined();
  });
});
