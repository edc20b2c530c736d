import { randomUUID } from 'node:crypto';
import { appender } from '../../src/ingest/ingest';
import { openLogIn } from './log-under-test';

/** A reported fact as a test writes it down. */
export interface Fact {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly id?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** What the clock of the log said. Left out: now. */
  readonly recordedAt?: string;
}

export const fact = (type: string, entityId: string, more: Omit<Partial<Fact>, 'type'> = {}): Fact => ({
  type,
  ...more,
  data: { entityId, ...more.data },
});

const opened = new Map<string, ReturnType<typeof openReporter>>();

const openReporter = async (folder: string) => {
  const parts = await openLogIn(folder);
  return { append: appender(parts), close: parts.log.close };
};

/**
 * Puts facts into the log of a folder with any clock, behind the back of whoever else uses it: as another service would
 * that appends to the log directly. Gives their ids.
 */
export const reportFacts = async (
  folder: string,
  tenantId: string,
  facts: readonly Fact[],
): Promise<readonly string[]> => {
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
