import { randomUUID } from 'node:crypto';
import { FIRST_FORMAT, UNFINISHED_COPY } from '../../domain/formats';
import { codeOf } from '../../fault';
import { isJsonObject } from '../../json';
import { APPEND_MS, type EventLog, type LoggedEvent } from '../event-log';
import type { Append } from './identity';
import type { StreamReader } from './stream-reader';

/** In the log's own stream, after its identity. Programs without formats read only the identity there. */
const RAISED = 'LogFormatRaised';

const formatIn = ({ data }: LoggedEvent): number => {
  const format = isJsonObject(data) ? data['format'] : undefined;
  return Number.isSafeInteger(format) ? Number(format) : FIRST_FORMAT;
};

/** Kept in the log's own stream, which has one event for each time the format was raised. */
export const formatOf = (
  reader: StreamReader,
  append: Append,
  stream: string,
): Pick<EventLog, 'format' | 'raiseFormat'> => {
  const read = async () => {
    let format: number | undefined;
    let revision = -1;
    for await (const batch of reader.forwards(stream, -1))
      for (const event of batch) {
        format = Math.max(format ?? UNFINISHED_COPY, formatIn(event));
        revision = event.revision;
      }
    return { format: format ?? FIRST_FORMAT, revision };
  };
  return {
    format: async () => (await read()).format,
    raiseFormat: async (to) => {
      for (;;) {
        const { format, revision } = await read();
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
