import { randomUUID } from 'node:crypto';
import { streamTails } from '../../src/access/stream-tails';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';

const emptyLog = { readStream: async function* (): AsyncGenerator<readonly LoggedEvent[]> {} };

it('does not accumulate what it read about tenants that do not exist', async () => {
  const tails = streamTails(emptyLog, streamNames());
  const first = randomUUID();
  await tails.read(first, -1, 0);
  expect(tails.known(first)).toBeDefined();
  for (let i = 0; i < 100_000; i += 1) await tails.read(randomUUID(), -1, 0);
  expect(tails.known(first)).toBeUndefined();
});
