import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { problems } from '../../src/problems';

/** Faults that never leave the process: each is caught and turned into another one. */
const INTERNAL = [
  'no_answer',
  'expired',
  'not_open',
  'generation_removed',
  'stream_changed',
  'failed',
  'commit_failed',
];

const SOURCE = join(__dirname, '..', '..', '..', 'src');

const thrown = (): ReadonlySet<string> => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const texts = files.map((file) => readFileSync(join(SOURCE, file), 'utf8')).join('\n');
  return new Set(
    [...texts.matchAll(/\b(?:fault|logFault|refusal)\(\s*'([a-z_]+)'/g)].map((match) => match[1] ?? ''),
  );
};

describe('error codes', () => {
  it('are documented, every one that the code throws', () => {
    const known = new Set([...Object.keys(problems), ...INTERNAL]);
    expect([...thrown()].filter((code) => !known.has(code))).toEqual([]);
  });

  it('are thrown somewhere, every one that is documented', () => {
    const elsewhere = [
      'headers_too_large',
      'malformed_request',
      'internal_error',
      'request_too_slow',
      'wrong_usage',
    ];
    const used = new Set([...thrown(), ...elsewhere]);
    expect(Object.keys(problems).filter((code) => !used.has(code))).toEqual([]);
  });
});
