import { problems } from '../../problems';
import { record, text, type Schema } from '../schema';
import type { HeadersFor } from './answer-headers';
import type { NamedSchemas } from './named-schemas';
import { answersOf, codesBeforeTheKey } from './problem-answers';

const problemPage = record(
  'ProblemPage',
  { code: text, status: { type: 'integer' }, title: text, meaning: text },
  ['status'],
);

const code = {
  name: 'code',
  in: 'path',
  required: true,
  description: 'The code of a problem.',
  schema: { enum: Object.keys(problems) },
};

/** What needs no key: it tells nothing about anybody. */
export const openPages = (headers: HeadersFor, schemas: NamedSchemas): Readonly<Record<string, Schema>> => {
  const refusals = answersOf(codesBeforeTheKey, headers);
  const open = (operationId: string, summary: string, ok: Schema, more: Schema = {}): Schema => ({
    get: { operationId, summary, security: [], ...more, responses: { 200: ok, ...refusals } },
  });
  const description = {
    description: 'This document.',
    headers: headers([]),
    content: { 'application/json': { schema: { type: 'object' } } },
  };
  const explanation = {
    description: 'What it means and what to do: for people, or for programs.',
    headers: headers(['Vary']),
    content: {
      'application/json': { schema: schemas.published(problemPage) },
      'text/html': { schema: text },
    },
  };
  return {
    '/openapi.json': open('getDescription', 'Get this description', description),
    '/problems/{code}': open('explainProblem', 'Explain a problem', explanation, { parameters: [code] }),
  };
};
