import { httpProblems, isHttpProblemCode, type HttpProblemCode } from '../../src/problems';
import type { ApiResponse } from './http';

/** The members of every problem. */
const MEMBERS = ['code', 'detail', 'instance', 'status', 'title', 'trace_id', 'type'];

const VALIDATION_TITLE = 'One or more validation errors occurred.';

/** Texts that would reveal internals to a caller: stack traces, paths, the driver. */
export const INSIDE = /\bat .+:\d+:\d+|node_modules|\/tmp\/|\/home\/|\.db\b|sqlite|SQLITE|ECONN|Error:/;

export interface ExpectedProblem {
  readonly status: number;
  readonly code: string;
  readonly instance?: string;
  /** For 400 `validation_failed`: the fields that are named, all of them. */
  readonly fields?: readonly string[];
  readonly more?: readonly string[];
  readonly type?: string;
  readonly traceHeader?: string;
}

export const expectProblem = (response: ApiResponse, expected: ExpectedProblem): void => {
  const { status, code, instance, fields, more = [], traceHeader = 'SVC-TRACE-ID' } = expected;
  expect({ status: response.status, text: response.text }).toEqual({
    status,
    text: expect.stringContaining(`"code":"${code}"`),
  });
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(response.headers.get('cache-control')).toBe('no-store');
  const body = response.json as Record<string, unknown>;
  const extra = [...(code === 'validation_failed' ? ['errors'] : []), ...more];
  expect(Object.keys(body).toSorted()).toEqual([...MEMBERS, ...extra].toSorted());
  expect(isHttpProblemCode(code)).toBe(true);
  expect(body['type']).toBe(expected.type ?? `/problems/${code}`);
  expect(body['status']).toBe(status);
  expect(body['title']).toMatch(/^[A-Z].+\.$/);
  expect(body['detail']).toMatch(/^.{10}/s);
  if (status >= 500) expect(body['detail']).toBe(httpProblems[code as HttpProblemCode].meaning);
  expect(body['instance']).toEqual(instance ?? expect.stringMatching(/^[/*]/));
  expect(body['trace_id']).toBe(response.headers.get(traceHeader));
  expect(body['trace_id']).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
  expect(response.text).not.toMatch(INSIDE);
  if (code !== 'validation_failed') return;
  expect(body['title']).toBe(VALIDATION_TITLE);
  const errors = body['errors'] as Record<string, string[]>;
  for (const texts of Object.values(errors)) {
    expect(texts.length).toBeGreaterThan(0);
    for (const text of texts) expect(text).toMatch(/^.{5}/s);
  }
  if (fields !== undefined) expect(Object.keys(errors).toSorted()).toEqual(fields.toSorted());
};
