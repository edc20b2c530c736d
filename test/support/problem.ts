import { httpProblems, type HttpProblemCode } from '../../src/problems';
import type { ApiResponse } from './http';

/** Texts that would reveal internals to a caller: stack traces, paths, the driver. */
const INSIDE = /\bat .+:\d+:\d+|node_modules|\/tmp\/|\/home\/|\.db\b|sqlite|SQLITE|ECONN|Error:/;

/**
 * With 400 `validation_failed`, the fields that are named, all of them. The rest of the body is checked for every response:
 * see `described`.
 */
export const expectProblem = (
  response: ApiResponse,
  status: number,
  code: HttpProblemCode,
  ...fields: readonly string[]
): void => {
  expect({ status: response.status, text: response.text }).toEqual({
    status,
    text: expect.stringContaining(`"code":"${code}"`),
  });
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(response.headers.get('cache-control')).toBe('no-store');
  const { title, detail, errors = {} } = response.json;
  expect(title).toMatch(/^[A-Z].+\.$/);
  expect(detail).toMatch(/^.{10}/s);
  if (status >= 500) expect(detail).toBe(httpProblems[code].meaning);
  expect(response.text).not.toMatch(INSIDE);
  for (const text of Object.values<readonly string[]>(errors).flat()) expect(text).toMatch(/^.{5}/s);
  if (fields.length > 0) expect(Object.keys(errors).toSorted()).toEqual(fields.toSorted());
};
