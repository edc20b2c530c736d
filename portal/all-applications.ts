import { call, textOf } from './api.js';
import type { Application, ApplicationPage } from './wire.js';

export const MAX_APPLICATIONS = 1_000;

/** All Applications, of a moment or of now; or why they cannot be had. */
export const loadApplications = async (
  asOf?: string,
  abort?: AbortSignal,
): Promise<readonly Application[] | string> => {
  const all: Application[] = [];
  let start: string | undefined;
  do {
    const more = {
      ...(asOf === undefined ? {} : { as_of: asOf }),
      ...(start === undefined ? {} : { start }),
    };
    const query = new URLSearchParams({ size: '100', ...more }).toString();
    const page = await call<ApplicationPage>(`/applications?${query}`, { signal: abort });
    if (!page.ok) return textOf(page.problem);
    all.push(...page.value.data);
    start = page.value.pagination.next;
  } while (start !== undefined && all.length < MAX_APPLICATIONS);
  return all;
};
