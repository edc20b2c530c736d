import type { App } from '../app/app';
import type { EntityFactType } from '../domain/facts';
import { encode } from '../event-log/codec';

/** What a newcomer sees in the logs and in the usage report: a little life of tokens, cards and a proxy. */
const story: readonly (readonly [EntityFactType, string, number])[] = [
  ['TokenCreated', 'tok_demo_1', 48],
  ['TokenCreated', 'tok_demo_2', 47],
  ['CardCreated', 'card_demo_1', 40],
  ['BankCreated', 'bank_demo_1', 36],
  ['TokenRead', 'tok_demo_1', 30],
  ['ProxyCreated', 'proxy_demo_1', 24],
  ['CardUsed', 'card_demo_1', 12],
  ['TokenUpdated', 'tok_demo_2', 6],
  ['TokenCreated', 'tok_demo_3', 4],
  ['TokenDeleted', 'tok_demo_2', 2],
  ['CardRead', 'card_demo_1', 1],
];

const HOUR_MS = 3_600_000;

export const addDemoFacts = async ({ log, streams }: App, tenantId: string): Promise<void> => {
  const now = Date.now();
  const at = new Date(now).toISOString();
  const events = story.map(([type, entityId, hoursAgo]) => {
    const occurredAt = new Date(now - hoursAgo * HOUR_MS).toISOString();
    return encode({ type, data: { entityId, occurredAt } }, { at });
  });
  await log.append(streams.activity(tenantId), events, 'no_stream');
};
