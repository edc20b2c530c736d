import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { openStreams } from '../../src/audit/open-streams';
import type { Stores } from '../../src/http/dependencies';
import { logCsv } from '../../src/http/routes/log-csv';
import type { RouteRequest } from '../../src/http/routes/route';
import { filledLog, TENANT } from '../support/log-rows';

const ROWS = 2_000;
const TIMES = { stalledMs: 100, lastMs: 10_000 };

describe('rows of the log as CSV', () => {
  let log: Awaited<ReturnType<typeof filledLog>>;
  beforeAll(async () => {
    log = await filledLog(ROWS);
  });
  afterAll(() => log.close());

  const csv = () => {
    const events = { open: openStreams(), stopping: new AbortController().signal };
    const request = { tenantId: TENANT, caller: { digest: '' }, gaveOut: () => undefined };
    return logCsv(
      {},
      request as unknown as RouteRequest<undefined>,
      { readModels: { read: async () => ({ set: log.reader }) }, events } as unknown as Stores,
      TIMES,
    );
  };

  it('do not look complete to a reader who stalled, and goes on later', async () => {
    const body = (await csv()).body as Readable;
    body.read(0);
    let hasEnded = false;
    body.on('end', () => (hasEnded = true));
    const [error] = (await once(body, 'error', { signal: AbortSignal.timeout(5_000) }).catch(
      async (late: unknown) => {
        body.resume();
        await once(body, 'close');
        return [late];
      },
    )) as [Error];
    expect({ message: error.message, hasEnded }).toEqual({
      message: 'The stream ended early: reader_stalled.',
      hasEnded: false,
    });
  });
});
