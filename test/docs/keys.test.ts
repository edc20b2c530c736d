import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import * as zlib from 'node:zlib';
import { routes } from '../../src/http/api';
import { headerNames } from '../../src/http/context';
import { openApiDocument } from '../../src/http/openapi/document';
import { makeKey, makeServiceKey } from '../../src/ledger/api-key';
import { blocks } from './pages';

const [pattern = ''] = blocks('docs/keys.md', 'text').map((text) => text.trim());

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** As the page describes it, with the checksum of another library. */
const isKey = (text: string): boolean => {
  const checksum = Array.from(text.slice(-6)).reduce((value, digit) => value * 62 + DIGITS.indexOf(digit), 0);
  return checksum === zlib.crc32(text.slice(0, -6));
};

describe('docs/keys.md, for secret scanners', () => {
  const keys = Array.from({ length: 500 }, (_, n) =>
    n % 2 === 0 ? makeKey(randomUUID()) : makeServiceKey(),
  );

  it('finds every key in a text, and nothing else', () => {
    const text = keys.map((key, n) => `KEY_${n}="${key}"; url=https://x/?key=${key}\n`).join('');
    expect(text.match(new RegExp(pattern, 'g'))).toEqual(keys.flatMap((key) => [key, key]));
    for (const none of [
      `x${keys[0]}`,
      `${keys[0]}x`,
      'key_',
      `key_${'a'.repeat(54)}`,
      `svc_${'a'.repeat(34)}`,
      randomUUID(),
    ])
      expect(none.match(new RegExp(pattern))).toBeNull();
  });

  it('distinguishes keys from look-alikes by their checksum', () => {
    expect(keys.filter(isKey)).toEqual(keys);
    const lookAlikes = keys.map((key) =>
      key.replace(/.(?=.{10}$)/, (letter) => (letter === 'a' ? 'b' : 'a')),
    );
    expect(lookAlikes.filter(isKey)).toEqual([]);
  });

  it('has Python code that does the same', () => {
    const code = blocks('docs/keys.md', 'python')[0];
    const looksLike = `key_${'a'.repeat(55)}`;
    const run = `${code}\nimport sys\nprint([is_key(line.strip()) for line in sys.stdin])`;
    let printed: string;
    try {
      printed = execFileSync('python3', ['-c', run], {
        input: [keys[0], looksLike, keys[1]].join('\n'),
      }).toString();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      console.log('docs/keys.md: there is no python3 here, so its example was not run');
      return;
    }
    expect(printed.trim()).toBe('[True, False, True]');
  });
});

describe('docs/keys.md, about what a key did', () => {
  it('shows a day with exactly the members of the API', () => {
    const document = openApiDocument(routes, { headers: headerNames('SVC'), publicUrl: '', version: '1' });
    const { schemas } = document['components'] as {
      schemas: Record<string, { readonly properties: object } | undefined>;
    };
    const [day = ''] = blocks('docs/keys.md', 'json');
    expect(Object.keys(JSON.parse(day) as object)).toEqual(
      Object.keys(schemas['ApplicationKeyUse']?.properties ?? {}),
    );
  });
});
