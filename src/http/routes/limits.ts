import { limitsView, specifiedPolicies } from '../../limits/policies';
import { ok, route } from './route';
import { count, listOf, meaning, record, text } from './schema';

const rateLimit = record('RateLimit', {
  name: meaning(text, 'As used in the `RateLimit` fields and in `violated_policies`.', 'global'),
  methods: meaning(listOf(text), 'The methods that it counts; `*` is all. HEAD counts as GET.'),
  paths: meaning(
    listOf(text),
    'The paths that it counts; `*` is all, and one that ends in `/*` all below it.',
  ),
  limit: meaning(count, 'Requests allowed per client address and window.', 1_000),
  window_seconds: meaning(count, 'The length of a window.', 10),
  block_seconds: meaning(count, 'How long an address is blocked after exceeding the limit.', 10),
});

const reactorLimits = record('ReactorLimits', {
  max_payload_bytes: meaning(count, 'The largest payload of an invocation.', 5_000_000),
  hot_concurrency: meaning(count, 'Invocations at the same time without a cold start.', 1),
  timeout_seconds: meaning(count, 'How long a synchronous invocation may take.', 30),
});

export const listLimits = route({
  method: 'get',
  path: '/limits',
  operationId: 'listLimits',
  summary: 'List the limits in force',
  tag: 'Limits',
  response: {
    status: 200,
    description: 'The rate limits of this service, and the limits of Reactors.',
    schema: record('Limits', {
      rate_limits: meaning(listOf(rateLimit), 'Counted per client address.'),
      reactor: meaning(reactorLimits, 'Enforced by the services that run Reactors.'),
    }),
    example: limitsView(specifiedPolicies),
  },
  handle: async (_, { limits }) => ok(limitsView(limits.policies)),
});
