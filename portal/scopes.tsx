import { filters, hasSubject, lastScope, queryOf, scope, type Scope } from './filters.js';
import { useLoaded } from './loaded.js';
import { total } from './log-rows.js';
import { withParameters } from './place.js';
import type { LogPage } from './wire.js';

const TITLES: readonly (readonly [Scope, string, string])[] = [
  ['all', 'All', 'Everything'],
  ['decision', 'Changes', 'What was decided here'],
  ['access', 'Access', 'What keys were used for and refused'],
  ['fact', 'Facts', 'What other services have reported'],
];

/** How many rows a scope has in the chosen time. With another filter they are not counted. */
const Count = ({ name }: { readonly name: Scope }) => {
  const { source: _source, ...times } = filters.value;
  const [loaded] = useLoaded<LogPage>(
    `/logs?${queryOf({ ...times, ...(name === 'all' ? {} : { source: name }) }, { size: '1' })}`,
  );
  const found = loaded?.ok === true ? loaded.value.pagination.total_items : undefined;
  const count = scope.value === name ? (total.value ?? found) : found;
  return <span class="quiet"> {count?.toLocaleString('en')}</span>;
};

/** Which rows are shown: by who says so. */
export const Scopes = () => (
  <nav class="scopes" aria-label="Rows">
    {TITLES.map(([name, title, meaning]) => (
      <a
        key={name}
        href={withParameters({ source: name, event: undefined })}
        aria-current={scope.value === name ? 'true' : undefined}
        title={meaning}
        onClick={() => (lastScope.value = name)}
      >
        {title}
        {hasSubject.value ? null : <Count name={name} />}
      </a>
    ))}
  </nav>
);
