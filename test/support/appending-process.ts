import type { EventLog } from '../../src/event-log/event-log';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { codeOf } from '../../src/fault';
import { anEvent, eventsOf } from './events';

/**
 * Appends this many events to one stream, one at a time, and retries each until it has won the race for a revision. Run
 * as a program (FOLDER STREAM COUNT) it sends `ready` when the log is open, starts when it gets a message, and sends
 * the ids of its events at the end.
 */
export const appendRacing = async (log: EventLog, stream: string, count: number) => {
  const ids: string[] = [];
  let revision = (await eventsOf(log.readStream(stream))).length - 1;
  while (ids.length < count) {
    const event = anEvent();
    try {
      ({ revision } = await log.append(stream, [event], revision < 0 ? 'no_stream' : revision));
      ids.push(event.id);
    } catch (error) {
      if (codeOf(error) !== 'stream_changed') throw error;
      revision = (error as { more?: { actual: number } }).more?.actual ?? -1;
    }
  }
  return ids;
};

const run = async (folder: string, stream: string, count: number): Promise<void> => {
  const log = await sqliteEventLog(folder, streamNames());
  const begin = new Promise((resolve) => process.once('message', resolve));
  process.send?.('ready');
  await begin;
  const ids = await appendRacing(log, stream, count);
  process.send?.(ids);
  await log.close();
  process.disconnect();
};

if (require.main === module) {
  const [folder = '', stream = '', count = '0'] = process.argv.slice(2);
  run(folder, stream, Number(count)).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
}
