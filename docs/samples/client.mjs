// A client of Tenant Ledger that loses nothing and does nothing twice: docs/clients.md says why.

const BASE = process.env.URL ?? 'http://127.0.0.1:8080';
const KEY = process.env.KEY;

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/** Repeats what is worth repeating. Writes have one idempotency key for all attempts. */
export const call = async (method, path, { body, headers } = {}, attempts = 5) => {
  const idempotency = method === 'GET' ? {} : { 'SVC-IDEMPOTENCY-KEY': crypto.randomUUID() };
  for (let attempt = 1; ; attempt += 1) {
    const isLast = attempt === attempts;
    try {
      const response = await fetch(`${BASE}${path}`, {
        method,
        headers: {
          'SVC-API-KEY': KEY,
          ...idempotency,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(5_000),
      });
      const retryAfter = response.headers.get('Retry-After');
      if (retryAfter === null || isLast) return response;
      await pause(Number(retryAfter));
    } catch (error) {
      if (isLast) throw error;
      await pause(attempt);
    }
  }
};

/** Changes the Tenant as it is, also if others change it at the same time. */
export const changeTenant = async (change) => {
  for (;;) {
    const current = await call('GET', '/tenants/self');
    const tag = current.headers.get('ETag');
    if (tag === null) throw new Error(`What the Tenant is now cannot be read: ${current.status}`);
    const headers = { 'If-Match': tag };
    const changed = await call('PUT', '/tenants/self', { body: change(await current.json()), headers });
    if (changed.status !== 412) return changed;
  }
};

/** Every row of the log, newest first. */
export const allLogs = async function* (filters = {}) {
  for (let start; ;) {
    const query = new URLSearchParams({ ...filters, ...(start === undefined ? {} : { start }) });
    const { data, pagination } = await (await call('GET', `/logs?${query}`)).json();
    yield* data;
    start = pagination.after;
    if (start === undefined) return;
  }
};

/** The events of a stream as they come. An empty line is a sign of life; the last line has no id. */
const eventsOf = async function* (body, alive) {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    alive();
    const lines = `${text}${decoder.decode(chunk, { stream: true })}`.split('\n');
    text = lines.pop();
    const parsed = lines.filter((line) => line !== '').map((line) => JSON.parse(line));
    yield* parsed.filter(({ id }) => id !== undefined);
  }
};

/** Every event after a position, and new ones as they come. Store the position with what you do. */
export const followEvents = async function* (after = '') {
  for (;;) {
    const silent = new AbortController();
    let timer;
    let waitSeconds = 1;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), 45_000);
    };
    try {
      alive();
      const response = await fetch(`${BASE}/events?follow=true&after=${encodeURIComponent(after)}`, {
        headers: { 'SVC-API-KEY': KEY },
        signal: silent.signal,
      });
      const retryAfter = response.headers.get('Retry-After');
      if (!response.ok && retryAfter === null)
        throw Object.assign(new Error(`The stream was refused: ${response.status}`), { isFinal: true });
      waitSeconds = Number(retryAfter ?? 1);
      for await (const event of eventsOf(response.ok ? response.body : [], alive)) {
        yield event;
        after = event.position;
      }
    } catch (error) {
      if (error.isFinal) throw error;
    } finally {
      clearTimeout(timer);
    }
    await pause(waitSeconds);
  }
};
