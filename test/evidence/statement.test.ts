import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/evidence/canonical-json';
import { statementOf, type StatedEvent } from '../../src/evidence/statement';

const TENANT = '0190d5a2-6a3c-7b54-8c1f-2f1c9a4e7d10';

describe('canonical JSON', () => {
  /** RFC 8785, appendix B: the bits of a number, and its text. */
  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('writes the number %s as %s', (bits, text) => {
    expect(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text);
  });

  it('writes the example of RFC 8785, 3.2.2', () => {
    const value = JSON.parse(`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`);
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        String.raw`"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it('sorts members by their UTF-16 code units, as in RFC 8785, 3.2.3', () => {
    const value = JSON.parse(
      String.raw`{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"}`,
    );
    expect(Object.values(JSON.parse(canonicalJson(value)) as object)).toHaveLength(7);
    expect(canonicalJson(value).match(/[A-Z][^"]*/g)).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  it('escapes what must be escaped and nothing else', () => {
    expect(canonicalJson('\b\t\n\f\r"\\/\u0000\u001f\u007f\u2028é😀')).toBe(
      `"\\b\\t\\n\\f\\r\\"\\\\/\\u0000\\u001f\u007f\u2028é😀"`,
    );
  });

  it('is the same for any order of members, at any depth', () => {
    const texts = [
      '{"b":[{"y":1,"x":{"d":[],"c":{}}}],"a":null}',
      '{"a":null,"b":[{"x":{"c":{},"d":[]},"y":1}]}',
    ];
    expect(texts.map((text) => canonicalJson(JSON.parse(text)))).toEqual([texts[1], texts[1]]);
  });

  it('keeps members with the names of what objects have, and leaves out undefined ones', () => {
    const text = '{"10":2,"9":1,"__proto__":{"x":1},"constructor":null}';
    expect(canonicalJson({ ...(JSON.parse(text) as object), gone: undefined })).toBe(text);
  });

  it.each(['[]', '{"a":1}'])('goes deeper than what can be stored: %s', (innermost) => {
    const deepest = (isPossible: (value: unknown) => unknown): number => {
      let depth = 0;
      try {
        for (let value = JSON.parse(innermost) as unknown; depth < 20_000; depth += 50) {
          for (let more = 0; more < 50; more += 1) value = innermost === '[]' ? [value] : { a: value };
          isPossible(value);
        }
      } catch {
        // The stack is too small.
      }
      return depth;
    };
    expect(deepest(canonicalJson)).toBeGreaterThan(deepest(JSON.stringify));
  });
});

const EVENT: StatedEvent = {
  id: '0190d5a2-6a3c-7b54-8c1f-000000000001',
  type: 'FactReported',
  revision: 4,
  recordedAt: '2026-11-19T10:00:00.000Z',
  data: { b: 1, a: 'x' },
  metadata: { version: 1 },
};

/** What the statement says, and that nothing else can say it. */
const stated = (event: Partial<StatedEvent>): Record<string, unknown> => {
  const statement = statementOf(TENANT, 'activity', { ...EVENT, ...event });
  const value = JSON.parse(statement) as Record<string, unknown>;
  expect(canonicalJson(value)).toBe(statement);
  return value;
};

describe('a statement', () => {
  it('has these members, in this form, for ever', () => {
    expect(statementOf(TENANT, 'activity', EVENT)).toBe(
      '{"data":{"a":"x","b":1},"id":"0190d5a2-6a3c-7b54-8c1f-000000000001","metadata":{"version":1},' +
        '"recorded_at":"2026-11-19T10:00:00.000Z","revision":4,"stream_kind":"activity",' +
        `"tenant_id":"${TENANT}","type":"FactReported","v":1}`,
    );
  });

  it('has the digest of the digest of a key', () => {
    const digest = 'f'.repeat(64);
    const digest_sha256 = createHash('sha256').update(digest).digest('hex');
    expect(stated({ type: 'KeyAdded', data: { keyId: 'k', digest } })['data']).toEqual({
      keyId: 'k',
      digest_sha256,
    });
  });

  it.each([
    ['FactReported', { digest: 'ab', nested: { digest: 'cd' } }],
    ['KeyAdded', { nested: { digest: 'ab' } }],
    ['KeyAdded', { digest: 7 }],
    ['KeyRevoked', { keyId: 'k', digest: 'ab' }],
  ])('has the data of a %s as they are: %j', (type, data) => {
    expect(stated({ type, data })['data']).toEqual(data);
  });

  it('has no addresses of clients and no name of an operator on their machine', () => {
    const metadata = {
      version: 1,
      client: { ip: '192.0.2.1' },
      clients: [{ ip: '192.0.2.2' }],
      actor: { kind: 'operator', id: 'o', osUser: 'ann', client: 'kept' },
      cause: { client: 'kept', osUser: 'kept' },
      osUser: 'kept',
    };
    expect(stated({ metadata })['metadata']).toEqual({
      version: 1,
      actor: { kind: 'operator', id: 'o', client: 'kept' },
      cause: { client: 'kept', osUser: 'kept' },
      osUser: 'kept',
    });
    expect(stated({ metadata: { actor: 'ann', version: 1 } })['metadata']).toEqual({
      actor: 'ann',
      version: 1,
    });
  });

  it('has the data of a fact with members of these names as they are', () => {
    const data = { client: 1, clients: 2, actor: { osUser: 'ann' } };
    expect(stated({ data })['data']).toEqual(data);
  });

  it.each([undefined, null])('has {} for metadata that are %s', (metadata) => {
    expect(stated({ metadata })['metadata']).toEqual({});
  });

  it('has what is not JSON in base64', () => {
    const bytes = Buffer.from([0xff, 0, 0x7b]);
    const { data, metadata } = stated({ type: 'KeyAdded', data: bytes, metadata: bytes });
    expect([data, metadata]).toEqual([{ base64: '/wB7' }, { base64: '/wB7' }]);
  });

  it.each([[['a', 1]], ['text'], [7], [false]])(
    'has data and metadata that are no object as they are: %j',
    (value) => {
      expect(stated({ type: 'KeyAdded', data: value, metadata: value })).toMatchObject({
        data: value,
        metadata: value,
      });
    },
  );

  it('is another one if anything in it is', () => {
    const others = [
      statementOf(TENANT, 'tenant', EVENT),
      statementOf(TENANT.replace('0', '1'), 'activity', EVENT),
      ...[
        { id: 'x' },
        { type: 'X' },
        { revision: 5 },
        { recordedAt: 'x' },
        { data: {} },
        { metadata: {} },
      ].map((other) => statementOf(TENANT, 'activity', { ...EVENT, ...other })),
    ];
    expect(new Set([...others, statementOf(TENANT, 'activity', EVENT)]).size).toBe(9);
  });
});
