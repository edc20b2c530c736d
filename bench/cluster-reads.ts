import { median, type Build, type Figures } from './builds';
import { UNLIMITED } from './cluster-puts';
import { startService } from './http-load';
import { inOwnPlace, proxiedMongodb } from './stores';

/** How often does `GET /tenants/self` ask MongoDB, and how often one after the other? */

/** Everything but what no request waits for, or only for its limits: who projects, and the counters. */
const ASKED = /^(?!read_model_leases$|rate_counters$)/;
/** Slow enough that commands under way at the same time are seen to overlap. */
const SLOW_MS = 10;
const REQUESTS = 21;

export const measureReads = async (root: string, build: Build, mongodbUrl: string): Promise<Figures> => {
  const { url, roundTrips, faults, close } = await proxiedMongodb(mongodbUrl);
  const figures = await inOwnPlace(url, async (place) => {
    const { server, keys } = await startService(root, { ...UNLIMITED, ...place }, build.main);
    const read = async () => {
      roundTrips.reset();
      const response = await fetch(`${server.url}/tenants/self`, {
        headers: { 'SVC-API-KEY': keys[0] ?? '' },
      });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`GET: ${response.status}`);
      return {
        inTurn: roundTrips.inTurn({ collection: ASKED }),
        all: roundTrips.count({ collection: ASKED }),
      };
    };
    await read();
    faults.add({ collection: ASKED, times: Infinity, action: { type: 'slow', ms: SLOW_MS } });
    const seen: Awaited<ReturnType<typeof read>>[] = [];
    for (let n = 0; n < REQUESTS; n += 1) seen.push(await read());
    faults.clear();
    await server.stop();
    return {
      'round trips in turn': median(seen.map(({ inTurn }) => inTurn)),
      'commands in all': median(seen.map(({ all }) => all)),
    };
  });
  await close();
  return figures;
};
