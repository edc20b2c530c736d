import { codeOf, moreOf } from '../../src/fault';
import { bodyCheck, formats } from '../../src/http/validation';

const sentences: Readonly<Record<string, string>> = {
  'date-time': 'must be an ISO 8601 date or date-time, for example 2026-01-31T12:00:00Z',
  uuid: 'must be a UUID, for example 11111111-2222-4333-8444-555555555555',
};

describe('a field of a body', () => {
  const errorsOf = (format: string, value: string): unknown => {
    const check = bodyCheck({ type: 'object', properties: { field: { type: 'string', format } } }, {}, {});
    try {
      return check({ field: value });
    } catch (error) {
      return codeOf(error) === 'validation_failed' ? moreOf(error)['errors'] : error;
    }
  };

  it.each(Object.keys(formats))('that violates the format %s is told the rule of that format', (format) => {
    const sentence = sentences[format] ?? 'no sentence is expected';
    expect(errorsOf(format, 'soon')).toEqual({ field: [sentence] });
    const [, example = ''] = sentence.split('for example ');
    expect(errorsOf(format, example)).toEqual({ field: example });
  });
});
