import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { problems } from '../../src/problems';

const SOURCE = join(__dirname, '..', '..', '..', 'src');

const thrown = (): ReadonlySet<string> => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const texts = files.map((file) => readFileSync(join(SOURCE, file), 'utf8')).join('\n');
  return new Set([...texts.matchAll(/\b(?:fault|refusal)\(\s*'([a-z_]+)'/g)].map((match) => match[1] ?? ''));
};

/** The other direction does not compile: a fault accepts only codes of the table. */
describe('error codes', () => {
  it('that are documented are all thrown somewhere', () => {
    const used = new Set([...thrown(), 'internal_error']);
    expect(Object.keys(problems).filter((code) => !used.has(code))).toEqual([]);
  });
});
