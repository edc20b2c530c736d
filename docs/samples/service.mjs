// A service's side of Tenant Ledger: verifies keys and reports facts. docs/services.md says why.

import { randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';

const { URL: BASE, SERVICE_KEY } = process.env;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/** Whether it has the form of a key: no question is needed if it does not. */
export const isKey = (text) =>
  /^key_[0-9A-Za-z]{55}$/.test(text) &&
  Array.from(text.slice(-6)).reduce((sum, digit) => sum * 62 + DIGITS.indexOf(digit), 0) ===
    crc32(text.slice(0, -6));

/** Repeats what is worth repeating. */
const post = async (path, type, body, attempts = 8) => {
  for (let attempt = 1; ; attempt += 1)
    try {
      const headers = { 'SVC-API-KEY': SERVICE_KEY, 'Content-Type': type };
      const signal = AbortSignal.timeout(5_000);
      const response = await fetch(`${BASE}${path}`, { method: 'POST', headers, body, signal });
      if (response.ok) return await response.json();
      const retryAfter = response.headers.get('Retry-After');
      const { code, detail } = await response.json();
      if (retryAfter === null) throw Object.assign(new Error(detail), { code, isFinal: true });
      if (attempt === attempts) throw new Error(code);
      await pause(Number(retryAfter));
    } catch (error) {
      if (error.isFinal || attempt === attempts) throw error;
      await pause(0.2 * attempt);
    }
};

const known = new Map();

/** Keeps a valid answer for at most a second, and an invalid one not at all. */
export const verifyKey = async (key, permission) => {
  if (!isKey(key)) return { valid: false, reason: 'malformed' };
  const name = `${key} ${permission}`;
  const before = known.get(name);
  if (before?.until > Date.now()) return before.answer;
  known.delete(name);
  const answer = await post('/keys/verify', 'application/json', JSON.stringify({ key, permission }));
  if (known.size >= 10_000) known.clear();
  const end = Math.min(Date.parse(answer.as_of) + 1_000, Date.parse(answer.expires_at ?? '9999-12-31'));
  if (answer.valid) known.set(name, { answer, until: end });
  return answer;
};

/** A fact with its id, to be stored before it is sent. */
export const newFact = (tenantId, type, data, more = {}) => ({
  id: randomUUID(),
  tenant_id: tenantId,
  type,
  data: { occurredAt: new Date().toISOString(), ...data },
  ...more,
});

/** Reports facts in order, and returns those that were refused for good. */
export const report = async (facts) => {
  const refused = [];
  for (let left = facts; left.length > 0;) {
    const batch = left.slice(0, 500);
    const body = batch.map((fact) => `${JSON.stringify(fact)}\n`).join('');
    const answer = await post('/facts', 'application/x-ndjson', body);
    refused.push(...answer.refused.filter(({ retry }) => !retry));
    const again = answer.refused.filter(({ retry }) => retry).map(({ line }) => batch[line - 1]);
    if (again.length > 0) await pause(1);
    left = [...again, ...left.slice(batch.length)];
  }
  return refused;
};
