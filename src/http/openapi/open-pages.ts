import { problems } from '../../problems';
import { listOf, meaning, record, text, type Schema } from '../routes/schema';
import type { HeadersFor } from './answer-headers';
import type { NamedSchemas } from './named-schemas';
import { answersOf, codesWithoutKey } from './problem-answers';

const codeOfProblem = meaning(text, 'The stable name of the problem.', 'not_found');
const statusOfProblem = meaning(
  { type: 'integer', format: 'int64' },
  'Its HTTP status; left out: it is one of the command line.',
  404,
);
const titleOfProblem = meaning(text, 'The kind of error, always in the same words.');

const problemPage = record(
  'ProblemPage',
  {
    code: codeOfProblem,
    status: statusOfProblem,
    title: titleOfProblem,
    meaning: meaning(text, 'What it means and what to do.'),
  },
  ['status'],
);

const SERVICE = {
  name: 'tenant-ledger',
  version: '0.1.0',
  docs: '/docs',
  openapi: '/openapi.json',
  problems: '/problems',
};

const service = record('Service', {
  name: meaning(text, 'The name of the program.', SERVICE.name),
  version: meaning(text, 'Its version.', SERVICE.version),
  docs: meaning(text, 'The path of the API reference.', SERVICE.docs),
  openapi: meaning(text, 'The path of this document.', SERVICE.openapi),
  problems: meaning(text, 'The path of the list of problems.', SERVICE.problems),
});

const problemList = record('ProblemList', {
  data: meaning(
    listOf(
      record('ProblemSummary', { code: codeOfProblem, status: statusOfProblem, title: titleOfProblem }, [
        'status',
      ]),
    ),
    'All of them.',
  ),
});

const page = { schema: text, example: '<!doctype html>' };

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
      'text/html': page,
    },
  };
  const about = {
    description: 'What this service is, and where it is described: for people, or for programs.',
    headers: headers(['Vary']),
    content: {
      'application/json': { schema: schemas.published(service), example: SERVICE },
      'text/html': page,
    },
  };
  const reference = {
    description: 'Every call with a line to copy.',
    headers: headers([]),
    content: { 'text/html': page },
  };
  const list = {
    description: 'Every code: for people, or for programs.',
    headers: headers(['Vary']),
    content: {
      'application/json': {
        schema: schemas.published(problemList),
        example: { data: [{ code: 'not_found', status: 404, title: problems.not_found.title }] },
      },
      'text/html': page,
    },
  };
  return {
    '/': open('getService', 'Describe this service', about),
    '/docs': open('getApiReference', 'Show the API reference', reference),
    '/problems': open('listProblems', 'List the problems', list),
    '/openapi.json': open('getOpenApiDocument', 'Get this document', description),
    '/problems/{code}': open('getProblem', 'Explain a problem', explanation, { parameters: [code] }),
  };
};
