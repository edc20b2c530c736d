import { appendToEnd, type NewEvent } from '../../src/event-log/event-log';
import { pause } from '../../src/async/clock';
import { TIMES } from '../../src/times';
import type { NewTenant } from '../support/beside';
import { startReporter } from '../support/accounted-facts';
import { rowsOf, startWriters, type Acknowledged } from '../support/accounted-writers';
import { isCampaign, saysHowFar } from '../support/campaign';
import { closeAfterwards } from '../support/closing';
import { anEvent } from '../support/events';
import { startInstances, type Instances } from '../support/instances';
import { describeMongodb } from '../support/mongodb/databases';
import { stopInTransaction } from '../support/mongodb/open-transactions';
import { until, deferred } from '../support/waiting';

const FACTS = Number(process.env['FACTS'] ?? '2000');
const BATCH = 100;
const WRITERS = isCampaign ? 24 : 6;
/** In the short form, writers leave the processor to the instances. */
const REST_MS = isCampaign ? 0 : 50;
const CALM_MS = 3_000;
/** Longer than an open transaction is left alone. */
const STOPPED_MS = 15_000;
const SHOWN_MS = isCampaign ? Infinity : 60_000;

/** Whether the instances have been at work for a while: at first they are busy with their own start. */
const areShownAtOnce = (acknowledged: readonly Acknowledged[]): boolean => {
  const last = acknowledged.filter(({ upTo }) => upTo > performance.now() - CALM_MS);
  return last.length > WRITERS && last.every(({ isPending }) => !isPending);
};

/** As another service does that writes to the event store itself. */
const appendFacts = async ({ app: { log, streams } }: Instances, { tenantId }: NewTenant): Promise<void> => {
  const fact = (n: number): NewEvent =>
    anEvent({ entityId: `t${n % 1_000}` }, { type: 'TokenUsed', metadata: { version: 1 } });
  const saysDone = saysHowFar('facts appended', FACTS);
  for (let done = 0; done < FACTS; done += BATCH) {
    const events = Array.from({ length: BATCH }, (_, n) => fact(done + n));
    await appendToEnd(log, streams.activity(tenantId), events, 60_000);
    saysDone(done + BATCH);
  }
};

describeMongodb('three instances that write while facts are appended directly', () => {
  let instances: Instances;
  beforeAll(async () => {
    instances = await startInstances(3, { RATE_LIMITS: 'off' });
  }, 120_000);
  afterAll(() => instances.close());

  const stopTwo = async () => {
    const { running, proxies } = instances;
    const { promise: resumed, resolve: resume } = deferred();
    const stoppedAt: number[] = [];
    // Also if the test fails: a suspended process does not end.
    closeAfterwards(() => running[1]!.process.kill('SIGCONT'));
    const stopping = (at: number, signal: NodeJS.Signals) => (): void => {
      stoppedAt.push(performance.now());
      running[at]!.process.kill(signal);
    };
    const held = await Promise.all([
      stopInTransaction(proxies[0]!.faults, stopping(0, 'SIGKILL')),
      stopInTransaction(proxies[1]!.faults, stopping(1, 'SIGSTOP'), resumed),
    ]);
    await pause(STOPPED_MS);
    running[1]!.process.kill('SIGCONT');
    const resumedAt = performance.now();
    resume();
    return {
      isHeld: (tenantId: string): boolean => held.some((holds) => holds(tenantId)),
      isMeanwhile: ({ from, upTo }: Acknowledged): boolean =>
        upTo > Math.min(...stoppedAt) && from < resumedAt,
    };
  };

  it(
    'lose and double nothing when one is killed and one suspended in a transaction, which delays its tenants only',
    async () => {
      const burst = await instances.newTenant();
      const before = await rowsOf(instances, burst.key, '&entity_type=token');
      const writers = await startWriters(instances, WRITERS, REST_MS);
      const reporter = await startReporter(instances, 10 * REST_MS);
      await until(() => areShownAtOnce(writers.acknowledged), SHOWN_MS);
      const stopping = stopTwo();
      await pause(TIMES.transactionMs - 1_000);
      const appending = appendFacts(instances, burst);
      const { isHeld, isMeanwhile } = await stopping;
      await instances.replaceKilled(0);
      await appending;
      const shown = async () => (await rowsOf(instances, burst.key, '&entity_type=token')) >= before + FACTS;
      await until(shown, SHOWN_MS);
      const writes = await writers.stop();
      const reported = await reporter.stop();
      expect(await rowsOf(instances, burst.key, '&entity_type=token')).toBe(before + FACTS);
      const verified = await instances.run('projections', 'verify');
      expect([verified.code, verified.stderr]).toEqual([0, expect.anything()]);
      const meanwhile = writers.acknowledged.filter(isMeanwhile);
      const pending = meanwhile.filter(({ isPending }) => isPending);
      const ofHeld = pending.filter(({ tenantId }) => isHeld(tenantId));
      // What the two say themselves is because they are being stopped, whoever's transaction is open.
      const ofOthers = pending.filter(({ tenantId, by }) => by === 2 && !isHeld(tenantId));
      console.table({
        'facts, all of them there once': FACTS,
        'acknowledged writes, all of them there once': writes,
        'facts reported over HTTP by two senders each, all of them there once': reported,
        'of these while two were stopped': meanwhile.length,
        'READ-PENDING, of tenants in the open transactions': ofHeld.length,
        'READ-PENDING, of other tenants, from the two': pending.length - ofHeld.length - ofOthers.length,
        'READ-PENDING, of other tenants, from the third': ofOthers.length,
      });
      expect(meanwhile.length).toBeGreaterThan(WRITERS);
      expect(ofOthers).toEqual([]);
    },
    isCampaign ? undefined : 240_000,
  );
});
