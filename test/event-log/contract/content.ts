import * as fc from 'fast-check';
import type { NewEvent } from '../../../src/event-log/event-log';
import { anyCharacter } from '../../support/any-character';
import { anEvent, eventsOf } from '../../support/events';
import { seed, seeded } from '../../support/property';
import type { GivenLog } from './given-log';

export const contentContract = (given: GivenLog): void => {
  it(
    seeded('stores any JSON unchanged'),
    async () => {
      const stream = given.aStream();
      let revision = -1;
      const json = fc.dictionary(
        fc.string({ unit: anyCharacter }),
        fc.jsonValue({ stringUnit: anyCharacter }),
      );
      await fc.assert(
        fc.asyncProperty(json, json, async (data, metadata) => {
          const event = JSON.parse(JSON.stringify({ data, metadata })) as Pick<NewEvent, 'data' | 'metadata'>;
          const after = revision;
          const appended = await given.log.append(
            stream,
            [anEvent(event.data, event)],
            after < 0 ? 'no_stream' : after,
          );
          revision = appended.revision;
          const [stored] = await eventsOf(given.log.readStream(stream, after));
          expect(stored).toMatchObject({ data: event.data, metadata: event.metadata });
        }),
        { seed, numRuns: 30 },
      );
    },
    60_000,
  );

  it('preserves unusual characters in names and data', async () => {
    const text = 'Grüße, 世界 👩‍👩‍👧 \u0000 \u2028 \ufeff "quoted" \\ \ud800';
    const stream = given.streams.tenant('Grüße 世界');
    await given.log.append(stream, [anEvent({ text, [text]: [text] }, { type: 'Grüße世界' })], 'no_stream');
    const [stored] = await eventsOf(given.log.readStream(stream));
    expect(stored).toMatchObject({ stream, type: 'Grüße世界', data: { text, [text]: [text] } });
  });
};
