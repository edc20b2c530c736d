import { limitsView } from '../limits/policies';
import { ok, route } from './route';
import { count, listOf, record, text } from './schema';

const rateLimit = record('RateLimit', {
  name: text,
  methods: listOf(text),
  paths: listOf(text),
  limit: count,
  window_seconds: count,
  block_seconds: count,
});

const reactorLimits = record('ReactorLimits', {
  max_payload_bytes: count,
  hot_concurrency: count,
  timeout_seconds: count,
});

export const listLimits = route({
  method: 'get',
  path: '/limits',
  summary: 'List the limits in force',
  answer: {
    status: 200,
    description: 'The rate limits of this service, and the limits of Reactors.',
    schema: record('Limits', { rate_limits: listOf(rateLimit), reactor: reactorLimits }),
  },
  handle: async (_, { limits }) => ok(limitsView(limits.policies)),
});
