import { call, type Result } from './api.js';
import type { Application, ApplicationPage } from './wire.js';

/** All Applications, of a moment or of now, oldest first. */
export const loadApplications = async (
  abort?: AbortSignal,
  asOf?: string,
): Promise<Result<readonly Application[]>> => {
  const all: Application[] = [];
  const query = new URLSearchParams({ size: '100', ...(asOf === undefined ? {} : { as_of: asOf }) });
  for (;;) {
    const page = await call<ApplicationPage>(`/applications?${query.toString()}`, { signal: abort });
    if (!page.ok) return page;
    all.push(...page.value.data);
    const { next } = page.value.pagination;
    if (next === undefined) return { ...page, value: all };
    query.set('start', next);
  }
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
