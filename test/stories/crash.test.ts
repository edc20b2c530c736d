import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { serviceProcess } from '../support/service';
import { crashCampaign } from './crash';

describe('a server killed while clients write', () => {
  let store: StandIn | undefined;
  afterAll(() => store?.stop());

  it.each([
    { on: 'its own event log', isEmbedded: true },
    { on: 'an event store', isEmbedded: false },
  ])(
    'loses no acknowledged write, duplicates none, and shows what the log says, on $on',
    async ({ isEmbedded }) => {
      const campaign = { kills: 1, clients: 16, seconds: 15 };
      if (!isEmbedded) store = await startStandIn();
      const log = store === undefined ? undefined : { EVENTSTORE_URL: store.url, STREAM_PREFIX: 'crash.' };
      const outcome = await crashCampaign(campaign, freshFolder(), serviceProcess, log);
      const seed = outcome.seed;
      expect({ seed, lost: outcome.lost, doubled: outcome.doubled, unsettled: outcome.unsettled }).toEqual({
        seed,
        lost: [],
        doubled: [],
        unsettled: [],
      });
      expect(outcome.acknowledged).toBeGreaterThan(campaign.kills);
      expect(outcome.unanswered).toBeGreaterThan(0);
      expect(outcome.readyAfterMs).toHaveLength(campaign.kills + 2);
      // Other tests run beside this one; the campaign measures how long a start takes alone.
      expect(Math.max(...outcome.readyAfterMs)).toBeLessThan(15_000);
      expect(outcome.live.length).toBeGreaterThan(2);
      expect(outcome.live).toEqual(outcome.rebuilt);
    },
    60_000,
  );
});
