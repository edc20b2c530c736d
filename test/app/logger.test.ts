import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { withoutDetails } from '../../src/app/logger';

describe('a request on a terminal', () => {
  const entry = {
    level: 30,
    time: '2026-01-31T12:00:00.000Z',
    trace_id: 'a',
    method: 'GET',
    route: '/tenants/self',
    status: 200,
    ms: 3.456,
    client_address: '127.0.0.1',
    application_id: 'app',
    key_id: 'key',
    msg: 'request',
  };
  const shown = (more: object) =>
    JSON.parse(withoutDetails(`${JSON.stringify({ ...entry, ...more })}\n`)) as object;

  it('is one line', () => {
    const { level, time } = entry;
    expect(shown({})).toEqual({ level, time, msg: 'GET /tenants/self 200 3 ms 127.0.0.1 app' });
    expect(shown({ route: null, status: 401, application_id: null, reason: 'missing' })).toEqual({
      level,
      time,
      msg: 'GET (no route) 401 3 ms 127.0.0.1 missing',
    });
    expect(shown({ msg: 'request failed', err: { stack: 'x' } })).toMatchObject({ err: { stack: 'x' } });
    expect(shown({ msg: 'ready' })).toEqual({ ...entry, msg: 'ready' });
  });
});

describe('the logger', () => {
  it('has written everything, in order, once it is flushed', () => {
    const module = join(__dirname, '..', '..', 'src', 'app', 'logger.js');
    const script = `const logger = require(${JSON.stringify(module)}).makeLogger('info', process.stderr);
      for (let n = 0; n < 2000; n += 1) logger.info({ n, text: 'x'.repeat(200) }, 'request');
      logger.flush(() => process.kill(process.pid, 'SIGKILL'));
    `;
    const { stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
    const numbers = [...stderr.matchAll(/"n":([0-9]+)/g)].map(([, n]) => Number(n));
    expect(numbers).toEqual(Array.from({ length: 2_000 }, (_, n) => n));
  });
});
