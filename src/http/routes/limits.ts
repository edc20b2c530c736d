import { specifiedPolicies, type Policy } from '../../limits/policies';
import { route } from '../route';
import { count, listOf, described, membersOf, record, text } from '../schema';

const rateLimit = record('RateLimit', {
  name: described(text, 'As used in the `RateLimit` fields and in `violated_policies`.', 'global'),
  methods: described(listOf(text), 'The methods that it counts; `*` is all. HEAD counts as GET.'),
  paths: described(
    listOf(text),
    'The paths that it counts; `*` is all, and one that ends in `/*` all below it.',
  ),
  limit: described(count, 'Requests allowed per client address and window.', 1_000),
  window_seconds: described(count, 'The length of a window.', 10),
  block_seconds: described(count, 'How long an address is blocked after exceeding the limit.', 10),
});

const reactorLimits = record('ReactorLimits', {
  max_payload_bytes: described(count, 'The largest payload of an invocation.', 5_000_000),
  hot_concurrency: described(count, 'Invocations at the same time without a cold start.', 1),
  timeout_seconds: described(count, 'How long a synchronous invocation may take.', 30),
});

/** The "Reactor limits" of the specification, enforced by the services that run Reactors. */
const REACTOR_LIMITS = { max_payload_bytes: 5_000_000, hot_concurrency: 1, timeout_seconds: 30 };

const limitsView = (policies: readonly Policy[]) => ({
  rate_limits: policies.map(({ windowSeconds: window_seconds, blockSeconds: block_seconds, ...policy }) =>
    membersOf(rateLimit, { ...policy, window_seconds, block_seconds }),
  ),
  reactor: REACTOR_LIMITS,
});

export const listLimits = route({
  method: 'get',
  path: '/limits',
  summary: 'List the limits in force',
  response: {
    description: 'The rate limits of this service, and the limits of Reactors.',
    schema: record('Limits', {
      rate_limits: described(listOf(rateLimit), 'Counted per client address.'),
      reactor: described(reactorLimits, 'Enforced by the services that run Reactors.'),
    }),
    example: limitsView(specifiedPolicies),
  },
  handle: async (_, { limits }) => ({ body: limitsView(limits.policies) }),
});
