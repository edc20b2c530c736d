import type { Browser, Page } from 'playwright-core';
import type { TIMES } from '../../src/times';
import { beside, type Beside } from './beside';
import { launch, openWindow, signInTo } from './browser';
import { fact, reportFacts } from './reported-facts';
import { allProjected, startService, type Service } from './service';

export interface PortalUnderTest {
  readonly browser: Browser;
  readonly service: Service;
  readonly by: Beside;
  readonly tenantId: string;
}

/** A service and a browser. */
export const startPortal = async (times?: typeof TIMES): Promise<PortalUnderTest> => {
  const [browser, service] = await Promise.all([launch(), startService({}, times)]);
  const by = await beside(service);
  return { browser, service, by, tenantId: await by.tenantId() };
};

/** Reports that tokens were created, and waits until they are shown. */
export const reportTokens = async (
  { service, tenantId }: Pick<PortalUnderTest, 'service' | 'tenantId'>,
  ids: readonly string[],
): Promise<void> => {
  const facts = ids.map((id) => fact('TokenCreated', id));
  await reportFacts(service.folder, tenantId, facts);
  await allProjected(service);
};

export const numbered = (count: number, name: string): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${name}-${i}`);

interface Opening {
  /** The page that is signed in to; by default the first. */
  readonly at?: string;
  /** Failures that the tests cause. */
  readonly expected?: RegExp;
  /** Tokens that were reported before. */
  readonly tokens?: readonly string[];
}

/** The same, and a window that is signed in to the portal. */
export const openPortal = async ({ at, expected, tokens = [] }: Opening = {}): Promise<
  PortalUnderTest & { readonly page: Page }
> => {
  const portal = await startPortal();
  if (tokens.length > 0) await reportTokens(portal, tokens);
  const page = await openWindow(portal.browser, expected);
  await signInTo(page, portal.service.url, portal.service.key, at);
  return { ...portal, page };
};
