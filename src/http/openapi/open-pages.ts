import { problems } from '../../problems';
import { meaning, record, text, type Schema } from '../routes/schema';
import type { HeadersFor } from './answer-headers';
import type { NamedSchemas } from './named-schemas';
import { answersOf, codesWithoutKey } from './problem-answers';

const problemPage = record(
  'ProblemPage',
  {
    code: meaning(text, 'The stable name of the problem.', 'not_found'),
    status: meaning(
      { type: 'integer', format: 'int64' },
      'Its HTTP status; left out: it is one of the command line.',
      404,
    ),
    title: meaning(text, 'The kind of error, always in the same words.'),
    meaning: meaning(text, 'What it means and what to do.'),
  },
  ['status'],
);

const code = {
  name: 'code',
  in: 'path',
  required: true,
  description: 'The code of a problem.',
  schema: { type: 'string', enum: Object.keys(problems) },
  example: 'not_found',
};

/** What needs no key: it says nothing about anybody. */
export const openPages = (headers: HeadersFor, schemas: NamedSchemas): Readonly<Record<string, Schema>> => {
  const refusals = answersOf(codesWithoutKey, headers);
  const open = (operationId: string, summary: string, ok: Schema, more: Schema = {}): Schema => ({
    get: {
      operationId,
      summary,
      tags: ['Description'],
      security: [],
      ...more,
      responses: { 200: ok, ...refusals },
    },
  });
  const description = {
    description: 'This document.',
    headers: headers([]),
    content: { 'application/json': { schema: { type: 'object' }, example: { openapi: '3.1.0' } } },
  };
  const explanation = {
    description: 'What it means and what to do: for people, or for programs.',
    headers: headers(['Vary']),
    content: {
      'application/json': {
        schema: schemas.published(problemPage),
        example: { code: 'not_found', ...problems.not_found },
      },
      'text/html': { schema: text, example: '<!doctype html>' },
    },
  };
  return {
    '/openapi.json': open('getOpenApiDocument', 'Get this document', description),
    '/problems/{code}': open('getProblem', 'Explain a problem', explanation, { parameters: [code] }),
  };
};
