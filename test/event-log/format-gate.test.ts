import { randomUUID } from 'node:crypto';
import { encode } from '../../src/event-log/codec';
import type { EventLog, NewEvent } from '../../src/event-log/event-log';
import { formatGate } from '../../src/event-log/format-gate';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { closeAfterwards } from '../support/closing';
import { eventsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import { refusedWith } from '../support/waiting';

const keyAdded = (more: { readonly name?: string } = {}): NewEvent => {
  const [keyId, applicationId] = [randomUUID(), randomUUID()];
  const data = { keyId, applicationId, digest: 'a'.repeat(64), ...more };
  return encode({ type: 'KeyAdded', data }, { at: new Date().toISOString() });
};
const older = (): NewEvent => keyAdded();
const newer = (): NewEvent => keyAdded({ name: 'Nightly import' });

describe('a log that holds events back', () => {
  const given = async (format: number) => {
    const made = { format };
    const log = await sqliteEventLog(freshFolder(), streamNames(), made);
    closeAfterwards(log.close);
    let [asked, found] = [0, log.format];
    const counted: EventLog = {
      ...log,
      format: () => {
        asked += 1;
        return found();
      },
    };
    return {
      log,
      held: formatGate(counted),
      stream: `tenant-${randomUUID()}`,
      asked: () => asked,
      answers: (answer: () => Promise<number>) => (found = answer),
    };
  };

  it('refuses the whole append if its format does not allow an event, naming the event and the command', async () => {
    const { log, held, stream } = await given(1);
    const appending = held.append(stream, [older(), newer()], 'no_stream');
    await expect(appending).rejects.toMatchObject({
      name: 'Fault',
      code: 'upgrade_unfinished',
      message: expect.stringMatching(/KeyAdded, version 2\..*`tenant-ledger log upgrade`/),
    });
    expect(await eventsOf(log.readStream(stream))).toEqual([]);
  });

  it('accepts events of the first format without reading its format', async () => {
    const { held, stream, asked } = await given(1);
    for (let revision = -1; revision < 3; revision += 1)
      await held.append(stream, [older()], revision < 0 ? 'no_stream' : revision);
    expect(asked()).toBe(0);
  });

  it('accepts the event as soon as the format is raised, and then does not read the format for every event', async () => {
    const { log, held, stream, asked } = await given(1);
    for (let tries = 0; tries < 2; tries += 1)
      expect(await refusedWith(held.append(stream, [newer()], 'no_stream'))).toBe('upgrade_unfinished');
    expect(asked()).toBe(2);
    await log.raiseFormat(2);
    for (let revision = -1; revision < 5; revision += 1)
      await held.append(stream, [newer()], revision < 0 ? 'no_stream' : revision);
    expect(asked()).toBe(3);
  });

  it('is unavailable if its format cannot be read in time', async () => {
    const { held, stream, answers } = await given(2);
    answers(() => new Promise(() => undefined));
    expect(await refusedWith(held.append(stream, [newer()], 'no_stream', 20))).toBe('log_unavailable');
  });
});
