import { MAX_NAME_LENGTH, mustBeName, nameFault } from '../../src/domain/texts';

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
