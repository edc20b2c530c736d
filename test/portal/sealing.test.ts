import { sealing } from '../../src/portal/sealing';
import { sessions, tickets } from '../../src/portal/session';

const SECRET = 'a secret of at least 32 characters!!';

describe('what is sealed', () => {
  it('opens only with the same secret and for the same purpose, unaltered', () => {
    const { seal, open } = sealing<{ a: number }>(SECRET, 'one');
    const sealed = seal({ a: 1 });
    expect(open(sealed)).toEqual({ a: 1 });
    expect(seal({ a: 1 })).not.toBe(sealed);
    expect(sealing(SECRET, 'two').open(sealed)).toBeUndefined();
    expect(sealing(`${SECRET}.`, 'one').open(sealed)).toBeUndefined();
    const bytes = Buffer.from(sealed, 'base64url');
    for (let i = 0; i < bytes.length; i += 1) {
      const altered = Buffer.from(bytes);
      altered[i] = (altered[i] ?? 0) ^ 1;
      expect(open(altered.toString('base64url'))).toBeUndefined();
    }
  });
});

describe('a session', () => {
  it('lasts eight hours', () => {
    let now = 1_000_000;
    const { cookieOf, keyIn } = sessions(SECRET, () => now);
    const cookie = cookieOf('key_1');
    now += 8 * 3_600_000 - 1;
    expect(keyIn(cookie)).toBe('key_1');
    now += 1;
    expect(keyIn(cookie)).toBeUndefined();
  });
});

describe('a ticket', () => {
  const download = { target: '/logs?entity_type=a', accept: 'text/csv', name: 'logs.csv' };

  it('works once, within 30 seconds, for the session that made it', () => {
    let now = 0;
    const { issue, use } = tickets(SECRET, () => now);
    const [one, two, three] = [issue('k', download), issue('k', download), issue('k', download)];
    expect(use('other', one)).toBeUndefined();
    expect(use('k', one)).toMatchObject(download);
    expect(use('k', one)).toBeUndefined();
    now = 29_999;
    expect(use('k', two)).toMatchObject(download);
    now = 30_000;
    expect(use('k', three)).toBeUndefined();
    expect(use('k', two)).toBeUndefined();
  });
});
