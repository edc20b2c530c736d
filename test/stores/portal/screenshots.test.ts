import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS } from '../../../src/domain/texts';
import { describeInBrowser, launch, openWindow, signInTo } from '../../support/browser';
import { allProjected, startService } from '../../support/service';

const DOCS = join(__dirname, '..', '..', '..', '..', 'docs', 'portal');
const MAX_BYTES = 150_000;

/** They show the demo. `npm run screenshots` writes them into the docs. */
describeInBrowser('the pictures in the docs', () => {
  it('are small', async () => {
    const [browser, service] = await Promise.all([launch(), startService()]);
    await allProjected(service);
    const page = await openWindow(browser);
    await page.setViewportSize({ width: 1200, height: 700 });
    await signInTo(page, service.url, service.key);
    const open = async (path: string, text: string): Promise<void> => {
      await page.goto(`${service.url}/portal/${path}`);
      await page.getByText(text).first().waitFor();
    };
    const take = async (name: string): Promise<void> => {
      const picture = await page.screenshot();
      expect(picture.length).toBeLessThan(MAX_BYTES);
      if (process.env['WRITE_DOCS'] !== undefined) writeFileSync(join(DOCS, `${name}.png`), picture);
    };

    // Rows are told in sentences once their events are there.
    await open('logs', 'fingerprint tokens');
    await page.getByText('Management created, management, with').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await take('log');
    await open(`tenant?as_of=${new Date(Date.now() - 10 * DAY_MS).toISOString()}`, 'Then');
    await take('as-of');
    await page.emulateMedia({ colorScheme: 'dark' });
    await open('logs?entity_type=tenant', 'fingerprint tokens');
    await page.locator('a.open-row').first().click();
    await page.getByRole('columnheader', { name: 'Before' }).waitFor();
    await take('event');
  });
});
