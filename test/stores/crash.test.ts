import { startStandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { describeMongodb } from '../support/mongodb/databases';
import { clustered, EMBEDDED } from '../support/profile';
import { serviceProcess } from '../support/service';
import { crashCampaign } from '../stories/crash';

const expectNothingLost = async (stores: Readonly<Record<string, string>>): Promise<void> => {
  const campaign = { kills: 1, clients: 16, seconds: 15 };
  const outcome = await crashCampaign(campaign, freshFolder(), serviceProcess, stores);
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
  expect(outcome.live.length).toBeGreaterThan(2);
  expect(outcome.live).toEqual(outcome.rebuilt);
};

describe('a server killed while clients write', () => {
  const name = 'loses no acknowledged write, duplicates none, and shows what the log says';

  it(name, () => expectNothingLost(EMBEDDED), 60_000);

  describeMongodb('to an event store and MongoDB', () => {
    it(
      name,
      async () => {
        const store = await startStandIn();
        await expectNothingLost(clustered(store.url));
        await store.stop();
      },
      180_000,
    );
  });
});
