import { isCampaign } from '../support/campaign';
import { startStandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { describeMongodb } from '../support/mongodb/databases';
import { clustered, EMBEDDED } from '../support/profile';
import { seeded } from '../support/property';
import { crashCampaign } from '../stories/crash';

/** `npm run campaign -- crash` sets more. */
const KILLS = Number(process.env['KILLS'] ?? 1);
const CLIENTS = Number(process.env['CLIENTS'] ?? 16);
const MAX_READY_MS = isCampaign ? 5_000 : Infinity;

const expectNothingLost = async (stores: Readonly<Record<string, string>>): Promise<void> => {
  const campaign = { kills: KILLS, clients: CLIENTS, seconds: isCampaign ? 600 : 15 };
  const outcome = await crashCampaign(campaign, freshFolder(), stores);
  expect(outcome).toMatchObject({ lost: [], doubled: [], unsettled: [] });
  expect(outcome.acknowledged).toBeGreaterThan(KILLS);
  expect(outcome.unanswered).toBeGreaterThan(0);
  expect(outcome.readyAfterMs).toHaveLength(KILLS + 2);
  expect(Math.max(...outcome.readyAfterMs)).toBeLessThan(MAX_READY_MS);
  expect(outcome.live.length).toBeGreaterThan(2);
  expect(outcome.live).toEqual(outcome.rebuilt);
};

describe('a server killed while clients write', () => {
  const name = seeded('loses no acknowledged write, duplicates none, and shows what the log says');

  it(name, () => expectNothingLost(EMBEDDED), isCampaign ? undefined : 60_000);

  describeMongodb('to an event store and MongoDB', () => {
    it(
      name,
      async () => {
        const store = await startStandIn();
        await expectNothingLost(clustered(store.url));
        await store.stop();
      },
      isCampaign ? undefined : 180_000,
    );
  });
});
