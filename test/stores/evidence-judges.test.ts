import * as fc from 'fast-check';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { evidenceKey, originOf, proofText, signedCheckpoint, verifierKey } from '../../src/evidence/note';
import { statementOf } from '../../src/evidence/statement';
import { leafHash, type Hash } from '../../src/evidence/tree';
import { consistencyIn, inclusionIn, rowsOf } from '../evidence/rows';
import { anyCharacter } from '../support/any-character';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { has } from '../support/programs';
import { seed, seeded } from '../support/property';
import { randomFrom } from '../support/random';

/** Programs that others wrote judge statements, trees and checkpoints. They are got where there is a way to get them. */

const ROOT = join(__dirname, '..', '..', '..');
const JUDGE = join(ROOT, 'test', 'stores', 'evidence-judge');
const VERIFY = join(ROOT, 'docs', 'evidence', 'verify');
const PATIENCE_MS = 60_000;
const BUILD_MS = 240_000;

interface Run {
  readonly cwd?: string;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeout?: number;
}

const run = (command: string, args: readonly string[], { env, ...options }: Run = {}) =>
  spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    timeout: BUILD_MS,
    ...options,
    env: { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off', ...env },
  });

const folder = freshFolder();

const whyNoGo = (): string => {
  if (!has('go', 'version')) return 'no Go here';
  const { status } = run('go', ['mod', 'download'], { cwd: JUDGE, timeout: PATIENCE_MS });
  return status === 0 ? '' : 'golang.org/x/mod cannot be had here';
};

const whyNoPython = (): string => {
  if (!has('python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 9))')) return 'no Python here';
  if (has('python3', '-c', 'import rfc8785')) return '';
  const args = ['-m', 'pip', 'install', '--retries=1', '--no-deps', '--target', folder, 'rfc8785==0.1.4'];
  const { status } = run('python3', args, { timeout: PATIENCE_MS });
  return status === 0 ? '' : 'the package rfc8785 cannot be had here';
};

const [noGo, noPython] = [whyNoGo(), whyNoPython()];
const withGo = itIf(noGo === '', noGo);
const withPython = itIf(noPython === '', noPython);

const built = (cwd: string, name: string): string => {
  const program = join(folder, name);
  const { status, stderr } = run('go', ['build', '-o', program, '.'], { cwd });
  if (status !== 0) throw new Error(stderr);
  return program;
};

const KEY = evidenceKey('a secret');
const ORIGIN = originOf('0190d5a2-6a3c-7b54-8c1f-2f1c9a4e7d10');
const VERIFIER = verifierKey(ORIGIN, KEY);

const ROW_COUNT = 1000;
const STATEMENTS = Array.from({ length: ROW_COUNT }, (_, row) => `{"v":1,"id":"row ${row}"}`);
const rows = rowsOf(STATEMENTS.map(leafHash));
const rootOf = (size: number): Hash => rows.roots[size] as Hash;
const checkpointOf = (size: number): string =>
  signedCheckpoint({ origin: ORIGIN, size, root: rootOf(size) }, KEY);

const base64 = (bytes: Buffer): string => bytes.toString('base64');
const rowCase = async (row: number, size: number, statement = STATEMENTS[row] ?? '') => ({
  kind: 'row',
  it: {
    statement: base64(Buffer.from(statement)),
    index: row,
    size,
    root: base64(rootOf(size)),
    proof: (await inclusionIn(rows, row, size)).map(base64),
  },
});
const treeCase = async (older: number, size: number, olderRoot = rootOf(older)) => ({
  kind: 'tree',
  it: {
    older,
    olderRoot: base64(olderRoot),
    size,
    root: base64(rootOf(size)),
    proof: (await consistencyIn(rows, older, size)).map(base64),
  },
});
const noteCase = (size: number, key = VERIFIER) => ({
  kind: 'note',
  it: { note: checkpointOf(size), key, text: `${ORIGIN}\n${size}\n${base64(rootOf(size))}\n` },
});

describe('Go judges', () => {
  let judge: string;
  beforeAll(() => {
    if (noGo === '') judge = built(JUDGE, 'judge');
  }, BUILD_MS);

  const judged = (cases: readonly object[]): readonly string[] => {
    const { status, stdout, stderr } = run(judge, [], {
      input: cases.map((it) => JSON.stringify(it)).join('\n'),
    });
    if (status !== 0) throw new Error(stderr);
    return stdout.trimEnd().split('\n');
  };
  const OK = (count: number): readonly string[] => Array(count).fill('ok') as string[];
  const random = randomFrom(seed);
  const upTo = (limit: number): number => 1 + Math.floor(random() * limit);

  withGo('each row of a log of 1,000 to be in it, and no other row to be there', async () => {
    const cases = await Promise.all(STATEMENTS.map((_, row) => rowCase(row, ROW_COUNT)));
    expect(judged(cases)).toEqual(OK(ROW_COUNT));
    const others = await Promise.all(STATEMENTS.map((_, row) => rowCase(row, ROW_COUNT, `row ${row}`)));
    expect(judged(others)).not.toContain('ok');
  });

  withGo(seeded('200 trees to begin with older ones, and not with others'), async () => {
    const pairs = Array.from({ length: 200 }, () => {
      const size = upTo(ROW_COUNT);
      return [upTo(size), size] as const;
    });
    const cases = await Promise.all(pairs.map(([older, size]) => treeCase(older, size)));
    expect(judged(cases)).toEqual(OK(200));
    const others = await Promise.all(pairs.map(([older, size]) => treeCase(older, size, leafHash('other'))));
    expect(judged(others)).not.toContain('ok');
  });

  withGo('checkpoints of all sizes to be signed by the key, and not by another one', () => {
    const sizes = [...Array(ROW_COUNT + 1).keys()];
    expect(judged(sizes.map((size) => noteCase(size)))).toEqual(OK(ROW_COUNT + 1));
    const other = verifierKey(ORIGIN, evidenceKey('another'));
    expect(judged(sizes.map((size) => noteCase(size, other)))).not.toContain('ok');
  });

  withGo(
    'a proof with the program in docs/evidence/verify, as an auditor does',
    async () => {
      const program = built(VERIFY, 'verify');
      const [proof, statement, other] = ['row.tlog-proof', 'statement.json', 'other.json'].map((name) =>
        join(folder, name),
      ) as [string, string, string];
      writeFileSync(proof, proofText(233, await inclusionIn(rows, 233, 789), checkpointOf(789)));
      writeFileSync(statement, STATEMENTS[233] ?? '');
      writeFileSync(other, STATEMENTS[234] ?? '');
      const [right, wrong, wrongKey] = [
        run(program, [proof, statement, VERIFIER]),
        run(program, [proof, other, VERIFIER]),
        run(program, [proof, statement, verifierKey(ORIGIN, evidenceKey('another'))]),
      ];
      expect([right.stderr, right.stdout]).toEqual(['', `The statement is row 234 of 789 of ${ORIGIN}.\n`]);
      expect([wrong.status, wrong.stderr]).toEqual([1, expect.stringContaining('NOT this row')]);
      expect([wrongKey.status, wrongKey.stderr]).toEqual([1, expect.stringContaining('verifiable')]);
    },
    BUILD_MS,
  );
});

/** JSON that looks as unlike the canonical form as it can: everything escaped, all numbers with exponents. */
const foreignJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[ ${value.map(foreignJson).join(' , ')} ]`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0.0' : value.toExponential(20);
  if (typeof value === 'string') {
    const units = Array.from({ length: value.length }, (_, at) => value.charCodeAt(at));
    return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`;
  }
  if (typeof value !== 'object' || value === null) return String(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${foreignJson(name)} : ${foreignJson(member)}`,
  );
  return `{ ${members.toReversed().join(' , ')} }`;
};

const SCRIPT = `
import json, rfc8785, sys
for line in sys.stdin:
    print(rfc8785.dumps(json.loads(line, parse_int=float)).hex())
`;

const HOSTILE_TEXTS = [
  '',
  '__proto__',
  'constructor',
  'toString',
  '1',
  '10',
  '9',
  '\u0000',
  '\u001f\b\t\n\f\r"\\/',
  '\u007f\u0080\u2028\u2029\ufeff\uffff',
  '\ufb33',
  '😀',
  '\u{10ffff}',
  '<script>&',
];
const NUMBERS = [
  -0, 0, 1e20, 1e21, 1e23, 1e-6, 1e-7, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
  9007199254740991, 9007199254740992, -9007199254740992, 0.1, 333333333.3333333,
];
const text = fc.oneof(
  fc.constantFrom(...HOSTILE_TEXTS),
  fc.string({ unit: anyCharacter }),
  fc.string({ unit: fc.constantFrom(...HOSTILE_TEXTS) }),
);
const number = fc.oneof(
  fc.constantFrom(...NUMBERS),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
);
const objectOf = (member: fc.Arbitrary<unknown>): fc.Arbitrary<object> =>
  fc.array(fc.tuple(text, member), { maxLength: 6 }).map((members) => Object.fromEntries(members) as object);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    fc.constantFrom(null, true, false),
    number,
    text,
    fc.array(tie('value'), { maxLength: 5 }),
    objectOf(tie('value')),
  ),
}));

describe('Python judges', () => {
  withPython(seeded('1,000 random statements to be canonical'), () => {
    const events = fc.sample(
      fc.record({
        id: text,
        type: text,
        revision: fc.maxSafeInteger(),
        recordedAt: text,
        data: fc.oneof(
          objectOf(value),
          value.filter((data) => data !== null),
        ),
        metadata: objectOf(value),
      }),
      { numRuns: 1000, seed },
    );
    const lines = events.map(({ recordedAt, ...event }) =>
      foreignJson({ v: 1, tenant_id: ORIGIN, stream_kind: 'tenant', recorded_at: recordedAt, ...event }),
    );
    const { stdout, stderr } = run('python3', ['-c', SCRIPT], {
      input: `${lines.join('\n')}\n`,
      env: { PYTHONPATH: folder },
    });
    expect(stderr).toBe('');
    const judgements = stdout.trimEnd().split('\n');
    const statements = events.map((event) => statementOf(ORIGIN, 'tenant', event));
    const found = statements.filter(
      (statement, at) => Buffer.from(statement).toString('hex') !== judgements[at],
    );
    expect(found).toEqual([]);
    expect(judgements).toHaveLength(1000);
  });
});
