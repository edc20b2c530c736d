import { freshFolder } from '../support/folders';
import { startService } from '../support/service';
import { crashCampaign } from './crash';

describe('a server that is killed while clients write', () => {
  it('loses no acknowledged write, doubles none, and shows what the log says', async () => {
    const campaign = { kills: 3, clients: 16, seconds: 15 };
    const outcome = await crashCampaign(campaign, freshFolder(), startService);
    const told = `seed ${outcome.seed}`;
    expect({ told, lost: outcome.lost, doubled: outcome.doubled, unsettled: outcome.unsettled }).toEqual({
      told,
      lost: [],
      doubled: [],
      unsettled: [],
    });
    expect(outcome.acknowledged).toBeGreaterThan(campaign.kills);
    expect(outcome.unanswered).toBeGreaterThan(0);
    expect(outcome.readyAfterMs).toHaveLength(campaign.kills + 2);
    expect(Math.max(...outcome.readyAfterMs)).toBeLessThan(5_000);
    expect(outcome.live.length).toBeGreaterThan(2);
    expect(outcome.live).toEqual(outcome.rebuilt);
  });
});
