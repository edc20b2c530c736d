/** A limit on the requests of one client address. */
export interface Policy {
  readonly name: string;
  /** `*`: every method. HEAD counts as GET. */
  readonly methods: readonly string[];
  /** `*`: every path. A path that ends in `/*` stands for all below it. */
  readonly paths: readonly string[];
  /** The requests allowed in a window, its length, and the length of the block that begins with one more. */
  readonly limit: number;
  readonly windowSeconds: number;
  readonly blockSeconds: number;
}

const ALL = ['*'];
const TEN_SECONDS = { windowSeconds: 10, blockSeconds: 10 };

/** The table of the specification, "Rate limits". The paths of tokens count although other services answer them. */
export const specifiedPolicies: readonly Policy[] = [
  { name: 'global', methods: ALL, paths: ALL, limit: 1_000, ...TEN_SECONDS },
  { name: 'portal', methods: ALL, paths: ['/portal', '/portal/*'], limit: 600, ...TEN_SECONDS },
  { name: 'tokens-search', methods: ['POST'], paths: ['/tokens/search'], limit: 50, ...TEN_SECONDS },
  { name: 'tokens-read', methods: ['GET'], paths: ['/tokens'], limit: 100, ...TEN_SECONDS },
  { name: 'tokens-create', methods: ['POST'], paths: ['/tokens', '/tokenize'], limit: 200, ...TEN_SECONDS },
];

/** The specification's "Reactor limits": whoever runs Reactors applies them. */
const reactorLimits = { max_payload_bytes: 5_000_000, hot_concurrency: 1, timeout_seconds: 30 };

const OFF = 'off';
const MAX_REQUESTS = 1_000_000_000;
const MAX_SECONDS = 3_600;
const CHANGE = /^([a-z-]+)=(?:off|([0-9]{1,10})(?:\/([0-9]{1,4})\/([0-9]{1,4}))?)$/;

const isBetween = (value: number, max: number): boolean => value >= 1 && value <= max;

/** One changed policy: `off`, or other numbers. Undefined: the text is not valid. */
const readChange = (text: string): { name: string; policy: Policy | typeof OFF } | undefined => {
  const [, name = '', limit, window, block] = CHANGE.exec(text) ?? [];
  const specified = specifiedPolicies.find((policy) => policy.name === name);
  if (specified === undefined) return undefined;
  if (limit === undefined) return { name, policy: OFF };
  const policy = {
    ...specified,
    limit: Number(limit),
    windowSeconds: Number(window ?? specified.windowSeconds),
    blockSeconds: Number(block ?? specified.blockSeconds),
  };
  const isValid =
    isBetween(policy.limit, MAX_REQUESTS) &&
    isBetween(policy.windowSeconds, MAX_SECONDS) &&
    isBetween(policy.blockSeconds, MAX_SECONDS);
  return isValid ? { name, policy } : undefined;
};

/** The policies in force, from the text of the setting. Undefined: it is not valid. */
export const readPolicies = (text: string): readonly Policy[] | undefined => {
  if (text === '') return specifiedPolicies;
  if (text === OFF) return [];
  const changes = new Map<string, Policy | typeof OFF>();
  for (const part of text.split(',')) {
    const change = readChange(part);
    if (change === undefined || changes.has(change.name)) return undefined;
    changes.set(change.name, change.policy);
  }
  return specifiedPolicies
    .map((policy) => changes.get(policy.name) ?? policy)
    .filter((policy) => policy !== OFF);
};

/** The limits in force as `GET /limits` and `tenant-ledger limits --json` show them. */
export const limitsView = (policies: readonly Policy[]) => ({
  rate_limits: policies.map(({ name, methods, paths, limit, windowSeconds, blockSeconds }) => ({
    name,
    methods,
    paths,
    limit,
    window_seconds: windowSeconds,
    block_seconds: blockSeconds,
  })),
  reactor: reactorLimits,
});

/** The same policy as an option of the limiter library. */
export const limiterOptions = ({ name, limit, windowSeconds, blockSeconds }: Policy) => ({
  keyPrefix: name,
  points: limit,
  duration: windowSeconds,
  blockDuration: blockSeconds,
});

const covers = (pattern: string, path: string): boolean =>
  pattern === '*' || pattern === path || (pattern.endsWith('/*') && path.startsWith(pattern.slice(0, -1)));

export const appliesTo = ({ methods, paths }: Policy, method: string, path: string): boolean =>
  (methods[0] === '*' || methods.includes(method === 'HEAD' ? 'GET' : method)) &&
  paths.some((pattern) => covers(pattern, path));
