import { randomUUID } from 'node:crypto';
import { appendToEnd, type NewEvent } from '../../src/event-log/event-log';
import { openLogIn } from './profile';

export interface Fact {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly id?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The time on the clock of the log; now if omitted. */
  readonly recordedAt?: string;
}

export const fact = (type: string, entityId: string, more: Omit<Partial<Fact>, 'type'> = {}): Fact => ({
  type,
  ...more,
  data: { entityId, ...more.data },
});

const opened = new Map<string, ReturnType<typeof openReporter>>();

const openReporter = async (folder: string) => {
  const { log, streams } = await openLogIn(folder);
  const append = async (tenantId: string, events: readonly NewEvent[]): Promise<void> => {
    await appendToEnd(log, streams.activity(tenantId), events, 10_000);
  };
  return { append, close: log.close };
};

/**
 * Appends facts to the log of a folder with any clock, bypassing whatever else uses it, like another service that
 * appends to the log directly. Returns their ids.
 */
export const reportFacts = async (folder: string, tenantId: string, facts: readonly Fact[]) => {
  const reporter = opened.get(folder) ?? openReporter(folder);
  opened.set(folder, reporter);
  const events = facts.map(({ type, data, id = randomUUID(), metadata = {}, recordedAt }) => ({
    id,
    type,
    data,
    metadata,
    ...(recordedAt === undefined ? {} : { recordedAt: new Date(recordedAt).toISOString() }),
  }));
  await (await reporter).append(tenantId, events);
  return events.map(({ id }) => id);
};

afterAll(async () => {
  for (const reporter of opened.values()) await (await reporter).close();
});
