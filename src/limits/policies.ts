/** A limit on the requests of one client address. */
export interface Policy {
  readonly name: string;
  /** `*`: every method. HEAD counts as GET. */
  readonly methods: readonly string[];
  /** `*`: every path. A path that ends in `/*` stands for all below it. */
  readonly paths: readonly string[];
  /** The requests allowed in a window. One more starts a block. */
  readonly limit: number;
  readonly windowSeconds: number;
  readonly blockSeconds: number;
  /** The name of a policy that does not count where this one applies. */
  readonly replaces?: string;
}

const ALL = ['*'];
const TEN_SECONDS = { windowSeconds: 10, blockSeconds: 10 };

/** The table "Rate limits" of the specification. The token paths are included although other services serve them. */
export const specifiedPolicies: readonly Policy[] = [
  { name: 'global', methods: ALL, paths: ALL, limit: 1_000, ...TEN_SECONDS },
  {
    name: 'portal',
    methods: ALL,
    paths: ['/portal', '/portal/*'],
    limit: 600,
    ...TEN_SECONDS,
    replaces: 'global',
  },
  { name: 'tokens-search', methods: ['POST'], paths: ['/tokens/search'], limit: 50, ...TEN_SECONDS },
  { name: 'tokens-read', methods: ['GET'], paths: ['/tokens'], limit: 100, ...TEN_SECONDS },
  { name: 'tokens-create', methods: ['POST'], paths: ['/tokens', '/tokenize'], limit: 200, ...TEN_SECONDS },
];

/** The "Reactor limits" of the specification, enforced by the services that run Reactors. */
const reactorLimits = { max_payload_bytes: 5_000_000, hot_concurrency: 1, timeout_seconds: 30 };

const OFF = 'off';
const MAX_REQUESTS = 1_000_000_000;
const MAX_SECONDS = 3_600;
const OVERRIDE = /^([a-z-]+)=(?:off|([0-9]{1,10})(?:\/([0-9]{1,4})\/([0-9]{1,4}))?)$/;

const isInRange = (value: number, max: number): boolean => value >= 1 && value <= max;

/** An override of one policy: `off`, or other numbers. Undefined: the text is invalid. */
const readOverride = (text: string): { name: string; policy: Policy | typeof OFF } | undefined => {
  const [, name = '', limit, window, block] = OVERRIDE.exec(text) ?? [];
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
    isInRange(policy.limit, MAX_REQUESTS) &&
    isInRange(policy.windowSeconds, MAX_SECONDS) &&
    isInRange(policy.blockSeconds, MAX_SECONDS);
  return isValid ? { name, policy } : undefined;
};

/** Parses the setting into the policies in force. Undefined: it is invalid. */
export const readPolicies = (text: string): readonly Policy[] | undefined => {
  if (text === '') return specifiedPolicies;
  if (text === OFF) return [];
  const overrides = new Map<string, Policy | typeof OFF>();
  for (const part of text.split(',')) {
    const override = readOverride(part);
    if (override === undefined || overrides.has(override.name)) return undefined;
    overrides.set(override.name, override.policy);
  }
  return specifiedPolicies
    .map((policy) => overrides.get(policy.name) ?? policy)
    .filter((policy) => policy !== OFF);
};

/** The limits in force, as shown by `GET /limits`. */
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

/** A policy as options of the limiter library. */
export const limiterOptions = ({ name, limit, windowSeconds, blockSeconds }: Policy) => ({
  keyPrefix: name,
  points: limit,
  duration: windowSeconds,
  blockDuration: blockSeconds,
});

/**
 * Percent-decoded, since whoever serves the path decodes it too. Byte by byte, which cannot fail: what is malformed
 * stays as it is.
 */
const decoded = (path: string): string =>
  path.includes('%')
    ? path
        .replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
        .replace(/(?<=.)\/$/, '')
    : path;

const covers = (pattern: string, path: string): boolean =>
  pattern === '*' || pattern === path || (pattern.endsWith('/*') && path.startsWith(pattern.slice(0, -1)));

/** `path` is as sent, without a trailing slash. */
export const appliesTo = ({ methods, paths }: Policy, method: string, path: string): boolean =>
  (methods[0] === '*' || methods.includes(method === 'HEAD' ? 'GET' : method)) &&
  paths.some((pattern) => covers(pattern, decoded(path)));
