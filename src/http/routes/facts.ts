import { factRefusals } from '../../ingest/record-facts';
import { serviceRoute } from '../route';
import { count, described, listOf, record, text, uuid, type Schema, oneOf } from '../schema';
import { invalid } from '../validation';

const sample = {
  id: 'aaaaaaaa-0000-4000-8000-000000000001',
  tenant_id: '11111111-2222-4333-8444-555555555555',
  type: 'TokenCreated',
  data: { entityId: 'tok_1', occurredAt: '2026-01-05T09:00:00Z' },
};

const actor: Schema = {
  title: 'FactActor',
  type: 'object',
  properties: {
    type: described(oneOf(['application', 'user']), 'What did it.'),
    id: described(uuid, 'Its id.'),
  },
  required: ['type', 'id'],
};

const factSchema: Schema = {
  title: 'Fact',
  type: 'object',
  properties: {
    id: described(uuid, 'Counts once per tenant: a fact that is sent again is already there.'),
    tenant_id: described(uuid, 'The tenant that it is about.'),
    type: described(
      text,
      'For example `TokenCreated`, or `ActivityReported` for anything else.',
      'TokenCreated',
    ),
    version: described({ type: 'integer', format: 'int64' }, 'The version of the data. Default: 1.'),
    actor: described(actor, 'Who did it.'),
    trace_id: described(text, 'Its trace, 1 to 128 of A-Z a-z 0-9 . _ : -'),
    key_id: described(uuid, "The tenant's key that it was done with."),
    data: described(
      {
        type: 'object',
        properties: { entityId: described(text, 'What it is about, 1 to 250 characters.') },
        required: ['entityId'],
        additionalProperties: true,
      },
      '`entityId`, and if wanted `occurredAt` (ISO 8601) and `message`; `ActivityReported` has `entityType` and `operation`. Other members are kept.',
      sample.data,
    ),
  },
  required: ['id', 'tenant_id', 'type', 'data'],
};

const schema: Schema = { oneOf: [factSchema, listOf(factSchema)] };

/** Each fact is checked by itself, so that one that is wrong does not keep the others out. */
const factsOf = (sent: unknown): Buffer | readonly unknown[] => {
  if (Buffer.isBuffer(sent) || Array.isArray(sent)) return sent as Buffer | readonly unknown[];
  if (typeof sent !== 'object' || sent === null)
    throw invalid({ body: ['must be a fact, or an array of facts'] });
  return [sent];
};

const refusedFact = record(
  'RefusedFact',
  {
    line: described(count, 'The number of its line, or its place in the array, from 1.', 3),
    id: described(uuid, 'Its id, if it has one.'),
    code: described(oneOf(factRefusals), 'Why, for programs.'),
    reason: described(text, 'Why, in at most 200 characters.', '"data" must be an object'),
    retry: described({ type: 'boolean' }, 'Whether it may be accepted if it is sent again as it is.', false),
  },
  ['id'],
);

export const reportFacts = serviceRoute({
  method: 'post',
  path: '/facts',
  summary: 'Report facts about any tenants',
  service: 'facts',
  body: Object.assign(factsOf, { schema, example: [sample], isOptional: false }),
  lines: `${JSON.stringify(sample)}\n`,
  response: {
    description: 'What became of the facts. The rest of them is in the log, once each.',
    schema: record('ReportedFacts', {
      accepted: described(count, 'How many are new.', 998),
      already_there: described(count, 'How many were there before, or twice in the request.', 1),
      refused: described(listOf(refusedFact), 'In the order of their lines.'),
    }),
  },
  handle: async ({ service, at, deadline, body: facts }, dependencies) => {
    const reported = await dependencies.reportFacts({ service, at, deadline, facts });
    const { accepted, alreadyThere, refused, toShow } = reported;
    return { body: { accepted, already_there: alreadyThere, refused }, toShow };
  },
});
