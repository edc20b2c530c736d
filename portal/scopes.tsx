import { useEffect, useState } from 'preact/hooks';
import { call } from './api.js';
import { filters, hasSubject, lastScope, queryOf, scope, type Scope } from './filters.js';
import { clock } from './parts.js';
import { withParameters } from './place.js';
import type { LogPage } from './wire.js';

const TITLES: readonly (readonly [Scope, string, string])[] = [
  ['all', 'All', 'Everything'],
  ['decision', 'Changes', 'What was decided here'],
  ['access', 'Access', 'What keys were used for and refused'],
  ['fact', 'Facts', 'What other services have reported'],
];
const COUNTED = ['decision', 'access', 'fact'] as const;
const REFRESH_MS = 60_000;

type Counts = Readonly<Record<string, number | undefined>>;

/** Rows of each scope in the chosen time. With another filter they are not counted. */
const useCounts = (): Counts => {
  const [counts, setCounts] = useState<Counts>({});
  const { start_date, end_date } = filters.value;
  const times = { ...(start_date && { start_date }), ...(end_date && { end_date }) };
  const isCounted = !hasSubject.value;
  useEffect(() => {
    if (!isCounted) return setCounts({});
    const abort = new AbortController();
    const count = async (source: string): Promise<number | undefined> => {
      const page = await call<LogPage>(`/logs?${queryOf(times, { source, size: '1' })}`, {
        signal: abort.signal,
      });
      return page.ok ? page.value.pagination.total_items : undefined;
    };
    void Promise.all(COUNTED.map(count)).then((found) => {
      const all = found.reduce((sum = NaN, one = NaN) => sum + one, 0) ?? NaN;
      const each = COUNTED.map((name, i) => [name, found[i]] as const);
      if (!abort.signal.aborted) setCounts({ ...Object.fromEntries(each), all });
    });
    return () => abort.abort();
  }, [start_date, end_date, isCounted, Math.floor(clock.value / REFRESH_MS)]);
  return counts;
};

/** Which rows are shown: by who says so. */
export const Scopes = () => {
  const counts = useCounts();
  return (
    <nav class="scopes" aria-label="Rows">
      {TITLES.map(([name, title, meaning]) => {
        const count = counts[name] ?? NaN;
        return (
          <a
            key={name}
            href={withParameters({ source: name, event: undefined })}
            aria-current={scope.value === name ? 'true' : undefined}
            title={meaning}
            onClick={() => (lastScope.value = name)}
          >
            {title}
            {Number.isNaN(count) ? null : <span class="quiet"> {count.toLocaleString('en')}</span>}
          </a>
        );
      })}
    </nav>
  );
};
