import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { MAX_STREAMS_PER_TENANT, openStreams } from '../../src/audit/open-streams';
import type { EventChunks } from '../../src/audit/reading';
import { streamNames } from '../../src/event-log/streams';
import { listEvents } from '../../src/http/routes/events';
import type { Stores } from '../../src/http/dependencies';
import type { RouteRequest } from '../../src/http/routes/route';

const INSTANCE = 500;

describe('open streams', () => {
  it('are limited per tenant and per instance, and one that ends makes room', () => {
    const open = openStreams();
    const releases = Array.from({ length: INSTANCE }, (_, at) =>
      open(`tenant ${Math.floor(at / MAX_STREAMS_PER_TENANT)}`),
    );
    const refused = (whose: string) => expect.objectContaining({ code: 'too_many_streams', message: whose });
    expect(() => open('tenant 0')).toThrow(
      refused('This Tenant has 20 streams of events open, and cannot have more.'),
    );
    expect(() => open('another')).toThrow(
      refused('This instance has 500 streams of events open, and cannot have more.'),
    );
    releases[0]?.();
    const release = open('another');
    expect(() => open('tenant 0')).toThrow(
      refused('This instance has 500 streams of events open, and cannot have more.'),
    );
    release();
    open('tenant 0')();
  });

  describe('whose reading fails', () => {
    const open = openStreams();
    const stopping = new AbortController().signal;
    const handled = (stream: () => EventChunks) => {
      const events = { ledgerLog: { streams: streamNames() }, reading: { stream }, open, stopping };
      const request = {
        tenantId: randomUUID(),
        query: { limit: Number.MAX_SAFE_INTEGER, follow: false },
        header: () => undefined,
        accepts: () => 'application/x-ndjson',
        gaveOut: () => undefined,
      };
      return () =>
        listEvents.handle(request as unknown as RouteRequest<unknown>, { events } as unknown as Stores);
    };
    const fail = (): never => {
      throw new Error('It cannot be read.');
    };

    it('at the start make room', async () => {
      const handle = handled(fail);
      for (let n = 0; n <= MAX_STREAMS_PER_TENANT; n += 1)
        await expect(handle()).rejects.toThrow('It cannot be read.');
    });

    it('later make room, and are closed', async () => {
      let closed = 0;
      const handle = handled(() => ({ next: async () => fail(), close: () => void (closed += 1) }));
      for (let n = 0; n <= MAX_STREAMS_PER_TENANT; n += 1) {
        const body = (await handle()).body as Readable;
        body.on('error', () => undefined).resume();
        await new Promise((resolve) => body.once('close', resolve));
      }
      expect(closed).toBe(MAX_STREAMS_PER_TENANT + 1);
    });
  });
});
