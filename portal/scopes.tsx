import { filters, hasSubject, lastScope, queryOf, scope, SCOPES, type Scope } from './filters.js';
import { useEvery, useLoaded } from './loaded.js';
import { tailState, total } from './log-rows.js';
import { withParameters } from './place.js';
import type { LogPage } from './wire.js';

const LOOK_MS = 10_000;

/** How many rows a scope has in the chosen time. With another filter they are not counted. */
const Count = ({ name }: { readonly name: Scope }) => {
  const { source: _source, ...times } = filters.value;
  const { value: page, reload } = useLoaded<LogPage>(
    `/logs?${queryOf({ ...times, ...(name === 'all' ? {} : { source: name }) }, { size: '1' })}`,
  );
  // Those that are not shown are not followed.
  useEvery(tailState.value.kind === 'live' && scope.value !== name ? LOOK_MS : undefined, reload);
  const found = page?.pagination.total_items;
  const count = scope.value === name ? (total.value ?? found) : found;
  return <span class="quiet"> {count?.toLocaleString('en')}</span>;
};

/** Which rows are shown: by who says so. */
export const Scopes = () => (
  <nav class="scopes" aria-label="Rows">
    {(Object.keys(SCOPES) as Scope[]).map((name) => (
      <a
        key={name}
        href={withParameters({ source: name, event: undefined })}
        aria-current={scope.value === name ? 'true' : undefined}
        title={SCOPES[name][1]}
        onClick={() => (lastScope.value = name)}
      >
        {SCOPES[name][0]}
        {hasSubject.value ? null : <Count name={name} />}
      </a>
    ))}
  </nav>
);
