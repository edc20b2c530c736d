import { call, textOf, type Result } from './api.js';
import type { Application, ApplicationPage } from './wire.js';

export const MAX_APPLICATIONS = 1_000;

/** All Applications, of a moment or of now, oldest first; or why they cannot be had. */
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

/** The newest 100 Applications, oldest first. The service has them the other way round: of more than 100, the last two pages. */
export const loadNewest = async (signal: AbortSignal): Promise<Result<ApplicationPage>> => {
  const load = (page: number) => call<ApplicationPage>(`/applications?size=100&page=${page}`, { signal });
  const first = await load(1);
  const { total_pages: last = 1 } = first.ok ? first.value.pagination : {};
  if (!first.ok || last === 1) return first;
  const [before, newest] = await Promise.all([load(last - 1), load(last)]);
  if (!before.ok || !newest.ok) return before.ok ? newest : before;
  const data = [...before.value.data, ...newest.value.data].slice(-100);
  return { ...newest, value: { ...newest.value, data } };
};
