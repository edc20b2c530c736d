import { pause } from '../../src/async/clock';
import { rowsOf } from './accounted-writers';
import { closeAfterwards } from './closing';
import { eventsOf, idsOf } from './events';
import { aFact, textOf } from './facts';
import { ask } from './http';
import type { Instances } from './instances';
import { newService } from './services';
import { until } from './waiting';

const BATCH = 20;
const PATIENCE_MS = 5_000;

interface Answer {
  readonly accepted: number;
  readonly already_there: number;
  readonly refused: readonly { readonly retry: boolean }[];
}

/**
 * A service reports facts about a tenant of its own, each by two senders to different instances at once, again and again
 * until it is accepted. At the end every fact is in the log once, and has one row.
 */
export const startReporter = async (instances: Instances, restMs = 0) => {
  const { tenantId, key } = await instances.newTenant();
  const service = await newService(instances.app, 'facts');
  const send = async (at: number, body: string): Promise<boolean> => {
    const answer = await ask(`${instances.running[at % instances.running.length]!.url}/facts`, {
      method: 'POST',
      key: service.key,
      headers: { 'Content-Type': 'application/x-ndjson' },
      body,
      signal: AbortSignal.timeout(PATIENCE_MS),
    }).catch(() => undefined);
    if (answer === undefined || answer.status === 503) return false;
    const { accepted, already_there, refused } = answer.json as Answer;
    expect([answer.status, refused.filter(({ retry }) => !retry)]).toEqual([200, []]);
    return accepted + already_there === BATCH;
  };
  const sent: string[] = [];
  let isOver = false;
  const report = async (): Promise<void> => {
    for (let at = 0; !isOver; at += 1) {
      const facts = Array.from({ length: BATCH }, () => aFact(tenantId, { type: 'ProxyUsed' }));
      const body = textOf(facts);
      for (let tries = at; ; tries += 1) {
        const done = await Promise.all([send(tries, body), send(tries + 1, body)]);
        if (done.includes(true)) break;
        await pause(20);
      }
      sent.push(...idsOf(facts));
      await pause(restMs);
    }
  };
  const reporting = report();
  // Also if the test fails: it would keep the process alive.
  closeAfterwards(async () => {
    isOver = true;
    await reporting;
  });
  return {
    stop: async (): Promise<number> => {
      isOver = true;
      await reporting;
      const { log, streams } = instances.app;
      const logged = await eventsOf(log.readStream(streams.activity(tenantId)));
      const facts = logged.filter(({ type }) => type === 'ProxyUsed').map(({ id }) => id);
      expect(facts.toSorted()).toEqual(sent.toSorted());
      const rows = () => rowsOf(instances, key, '&entity_type=proxy');
      await until(async () => (await rows()) >= sent.length);
      expect(await rows()).toBe(sent.length);
      return sent.length;
    },
  };
};
