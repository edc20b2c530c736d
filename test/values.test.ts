import { isJsonObject, parsedJson } from '../src/values';

describe('a JSON object', () => {
  it.each([
    ['an object', { a: 1 }, true],
    ['an empty object', {}, true],
    ['a list', [1], false],
    ['null', null, false],
    ['nothing', undefined, false],
    ['a text', '{}', false],
    ['bytes', Buffer.from('{}'), false],
    ['bytes of another kind', new Uint8Array(2), false],
  ])('is told from other values: %s', (_, value, expected) => {
    expect(isJsonObject(value)).toBe(expected);
  });
});

describe('a text', () => {
  it.each([
    ['{"a":[1,null]}', { a: [1, null] }],
    ['null', null],
    ['"x"', 'x'],
    ['', undefined],
    ['{', undefined],
    ['{"a":1} x', undefined],
  ])('is parsed if it is JSON: %s', (text, expected) => {
    expect(parsedJson(text)).toEqual(expected);
  });
});
