import { randomUUID } from 'node:crypto';
import type { LoggedEvent, NewEvent } from '../../src/event-log/event-log';

export const anEvent = (data: NewEvent['data'] = {}, more: Partial<NewEvent> = {}): NewEvent => ({
  id: randomUUID(),
  type: 'SomethingHappened',
  data,
  metadata: {},
  ...more,
});

export const someEvents = (count: number): readonly NewEvent[] =>
  Array.from({ length: count }, (_, number) => anEvent({ number }));

export const eventsOf = async (batches: AsyncIterable<readonly LoggedEvent[]>): Promise<LoggedEvent[]> => {
  const events: LoggedEvent[] = [];
  for await (const batch of batches) events.push(...batch);
  return events;
};

export const idsOf = (events: readonly { readonly id: string }[]): readonly string[] =>
  events.map((event) => event.id);
