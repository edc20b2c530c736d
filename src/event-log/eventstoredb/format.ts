import { randomUUID } from 'node:crypto';
import { FIRST_FORMAT } from '../../domain/formats';
import { codeOf } from '../../fault';
import { isJsonObject } from '../../json';
import { APPEND_MS, type EventLog, type LoggedEvent } from '../event-log';
import type { Append } from './identity';
import type { StreamReader } from './stream-reader';

/** In the log's own stream, behind its identity. Programs without formats read only the identity there. */
const RAISED = 'LogFormatRaised';

const formatIn = ({ data }: LoggedEvent): number => {
  const format = isJsonObject(data) ? data['format'] : undefined;
  return Number.isSafeInteger(format) ? Number(format) : FIRST_FORMAT;
};

/** What the log's own stream, which has an event for each time that the format was raised, says about it. */
export const formatOf = (
  reader: StreamReader,
  append: Append,
  stream: string,
): Pick<EventLog, 'format' | 'raiseFormat'> => {
  const found = async () => {
    let [format, revision] = [FIRST_FORMAT, -1];
    for await (const batch of reader.forwards(stream, -1))
      for (const event of batch) {
        format = Math.max(format, formatIn(event));
        revision = event.revision;
      }
    return { format, revision };
  };
  return {
    format: async () => (await found()).format,
    raiseFormat: async (to) => {
      for (;;) {
        const { format, revision } = await found();
        if (format >= to) return;
        const event = { id: randomUUID(), type: RAISED, data: { format: to }, metadata: {} };
        try {
          return void (await append(stream, [event], revision, APPEND_MS));
        } catch (error) {
          // Another process has raised it in the meantime.
          if (codeOf(error) !== 'stream_changed') throw error;
        }
      }
    },
  };
};
