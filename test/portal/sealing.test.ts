import { sessions } from '../../src/portal/sealed-session';

const SECRET = 'a secret of at least 32 characters!!';

describe('the cookie of a session', () => {
  it('opens only with the same secret, unaltered', () => {
    const { cookieOf, keyIn } = sessions(SECRET);
    const cookie = cookieOf('key_1');
    expect(keyIn(cookie)).toBe('key_1');
    expect(cookieOf('key_1')).not.toBe(cookie);
    expect(sessions(`${SECRET}.`).keyIn(cookie)).toBeUndefined();
    const bytes = Buffer.from(cookie, 'base64url');
    expect(bytes.toString('latin1')).not.toContain('key_1');
    for (let i = 0; i < bytes.length; i += 1) {
      const altered = Buffer.from(bytes);
      altered[i] = (altered[i] ?? 0) ^ 1;
      expect(keyIn(altered.toString('base64url'))).toBeUndefined();
    }
  });

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
