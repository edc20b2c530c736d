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
  /** It applies to requests with the valid key of a service only. */
  readonly ofServices?: true;
}

const ALL = ['*'];
const PORTAL = ['/portal', '/portal/*'];
const TEN_SECONDS = { windowSeconds: 10, blockSeconds: 10 };

/**
 * The table "Rate limits" of the specification, and one of our own for services. The token paths are included although
 * other services serve them.
 */
export const specifiedPolicies: readonly Policy[] = [
  { name: 'global', methods: ALL, paths: ALL, limit: 1_000, ...TEN_SECONDS },
  { name: 'portal', methods: ALL, paths: PORTAL, limit: 600, ...TEN_SECONDS, replaces: 'global' },
  { name: 'tokens-search', methods: ['POST'], paths: ['/tokens/search'], limit: 50, ...TEN_SECONDS },
  { name: 'tokens-read', methods: ['GET'], paths: ['/tokens'], limit: 100, ...TEN_SECONDS },
  { name: 'tokens-create', methods: ['POST'], paths: ['/tokens', '/tokenize'], limit: 200, ...TEN_SECONDS },
  {
    name: 'services',
    methods: ['GET', 'POST'],
    paths: ['/facts', '/keys/verify'],
    limit: 20_000,
    ...TEN_SECONDS,
    blockSeconds: 0,
    replaces: 'global',
    ofServices: true,
  },
];

const MAX_REQUESTS = 1_000_000_000;
const MAX_SECONDS = 3_600;
const OVERRIDE = /^([a-z-]+)=(?:off|([1-9][0-9]{0,9})(?:\/([1-9][0-9]{0,3})\/([1-9][0-9]{0,3}))?)$/;

/** Turns one specified policy off, or gives it other numbers. Undefined: the text is invalid. */
const overridden = (policies: readonly Policy[], text: string): readonly Policy[] | undefined => {
  const [, name, limit, window, block] = OVERRIDE.exec(text) ?? [];
  const specified = specifiedPolicies.find((policy) => policy.name === name);
  if (specified === undefined || !policies.includes(specified)) return undefined;
  if (limit === undefined) return policies.filter((policy) => policy !== specified);
  const windowSeconds = Number(window ?? specified.windowSeconds);
  const blockSeconds = Number(block ?? specified.blockSeconds);
  if (Number(limit) > MAX_REQUESTS || Math.max(windowSeconds, blockSeconds) > MAX_SECONDS) return undefined;
  const changed = { ...specified, limit: Number(limit), windowSeconds, blockSeconds };
  return policies.map((policy) => (policy === specified ? changed : policy));
};

/** Parses the setting into the policies in force. Undefined: it is invalid. */
export const readPolicies = (text: string): readonly Policy[] | undefined => {
  if (text === 'off') return [];
  if (text === '') return specifiedPolicies;
  let policies: readonly Policy[] | undefined = specifiedPolicies;
  for (const part of text.split(',')) policies &&= overridden(policies, part);
  return policies;
};
