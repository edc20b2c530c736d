import { ledgerStatus } from '../../src/app/status';
import { freshFolder } from '../support/folders';
import { openAppIn } from '../support/profile';
import { operatorAt } from '../support/operator';

describe('the status under load', () => {
  it('shows no read model ahead of the head, though events came after the head was asked for', async () => {
    const folder = freshFolder();
    await operatorAt(folder).json('tenant create --name Acme');
    const app = await openAppIn(folder);
    try {
      const { log, read_models } = await ledgerStatus({
        ...app,
        log: { ...app.log, head: async () => undefined },
      });
      expect(read_models.position).not.toBeNull();
      expect(log.head).toBe(read_models.position);
    } finally {
      await app.close();
    }
  });
});
