import { readPolicies, specifiedPolicies } from '../../src/limits/policies';
import { rateLimits } from '../../src/limits/rate-limits';

describe('the policies', () => {
  it('are those of the specification, and one for services', () => {
    const ten = { windowSeconds: 10, blockSeconds: 10 };
    expect(readPolicies('')).toEqual([
      { name: 'global', methods: ['*'], paths: ['*'], limit: 1_000, ...ten },
      {
        name: 'portal',
        methods: ['*'],
        paths: ['/portal', '/portal/*'],
        limit: 600,
        ...ten,
        replaces: 'global',
      },
      { name: 'tokens-search', methods: ['POST'], paths: ['/tokens/search'], limit: 50, ...ten },
      { name: 'tokens-read', methods: ['GET'], paths: ['/tokens'], limit: 100, ...ten },
      { name: 'tokens-create', methods: ['POST'], paths: ['/tokens', '/tokenize'], limit: 200, ...ten },
      {
        name: 'services',
        methods: ['GET', 'POST'],
        paths: ['/facts', '/keys/verify'],
        limit: 20_000,
        windowSeconds: 10,
        blockSeconds: 0,
        replaces: 'global',
        ofServices: true,
      },
    ]);
  });

  it('can be changed one by one, and turned off', () => {
    expect(readPolicies('off')).toEqual([]);
    const changed = readPolicies('tokens-search=off,global=7,portal=8/2/3')!;
    expect(
      changed.map(({ name, limit, windowSeconds, blockSeconds }) => [
        name,
        limit,
        windowSeconds,
        blockSeconds,
      ]),
    ).toEqual([
      ['global', 7, 10, 10],
      ['portal', 8, 2, 3],
      ['tokens-read', 100, 10, 10],
      ['tokens-create', 200, 10, 10],
      ['services', 20_000, 10, 0],
    ]);
  });

  it.each([
    ['GET', '/', 'global'],
    ['GET', '/tenants/self', 'global'],
    ['GET', '/tokens', 'global tokens-read'],
    ['HEAD', '/tokens', 'global tokens-read'],
    ['OPTIONS', '/tokens', 'global'],
    ['POST', '/tokens', 'global tokens-create'],
    ['POST', '/tokenize', 'global tokens-create'],
    ['GET', '/tokenize', 'global'],
    ['POST', '/tokens/search', 'global tokens-search'],
    ['GET', '/tokens/search', 'global'],
    ['GET', '/tokens/abc', 'global'],
    ['GET', '/Tokens', 'global'],
    ['GET', '/tokensearch', 'global'],
    ['GET', '/%74okens', 'global tokens-read'],
    ['GET', '/%74%6f%6B%65%6E%73', 'global tokens-read'],
    ['GET', '/tokens%2F', 'global tokens-read'],
    ['POST', '/tokens%2Fsearch', 'global tokens-search'],
    ['POST', '/%70ortal/%zz%', 'portal'],
    ['GET', '/%54okens', 'global'],
    ['GET', '/%2574okens', 'global'],
    ['GET', '/%zztokens', 'global'],
    ['GET', '/tokens%', 'global'],
    ['GET', '/tokens%3Fsize=1', 'global'],
    ['GET', '/tokens%c3%a9', 'global'],
    ['GET', '//tokens', 'global'],
    ['GET', '/portal', 'portal'],
    ['POST', '/portal/a/b', 'portal'],
    ['GET', '/portals', 'global'],
    ['GET', '*', 'global'],
    ['POST', '/facts', 'global'],
    ['POST', '/facts', 'services', true],
    ['GET', '/keys/verify', 'services', true],
    ['GET', '/logs', 'global', true],
  ])('%s %s: %s', async (method, path, names, isService = false) => {
    const alone = { shared: undefined, sharedWithinMs: 0, shownAloneMs: 10_000, report: () => undefined };
    const { fields } = await rateLimits(specifiedPolicies, alone).count(
      method,
      path,
      '192.0.2.1',
      async () => isService,
    );
    const counted = Array.from(fields?.RateLimit.matchAll(/"([^"]+)"/g) ?? [], ([, name]) => name);
    expect(counted.join(' ')).toBe(names);
  });
});
