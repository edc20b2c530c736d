import { ledgerStatus } from '../../src/app/status';
import { freshFolder } from '../support/folders';
import { openAppIn } from '../support/profile';
import { operatorAt } from '../support/operator';

describe('the status under load', () => {
  it('shows no read model ahead of the head, though events come while it is asked for', async () => {
    const folder = freshFolder();
    const operator = operatorAt(folder);
    await operator.json('tenant create --name Acme');
    const app = await openAppIn(folder);
    const { readModels } = app.replay;
    const live = async () => {
      await operator.json('tenant create --name Other');
      return readModels.live();
    };
    try {
      const busy = { ...app, replay: { ...app.replay, readModels: { ...readModels, live } } };
      const { log, read_models } = await ledgerStatus(busy);
      expect(read_models.position).not.toBeNull();
      expect(log.head).toBe(read_models.position);
    } finally {
      await app.close();
    }
  });
});
