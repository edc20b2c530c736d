import { useEffect, useRef } from 'preact/hooks';
import { memo } from './memo.js';
import { nameOf } from './names.js';
import { isLoading, loadOlder, MAX_ROWS, next, problem, rows } from './log-rows.js';
import { Time } from './parts.js';
import { go, withParameters } from './place.js';
import type { FilterName } from './filters.js';
import type { Log } from './wire.js';

const filterBy = (name: FilterName, value: string): string =>
  withParameters({ [name]: value, event: undefined });

interface CellProps {
  readonly name: FilterName;
  readonly value: string;
  readonly text?: string;
}

/** A cell filters by what it shows. */
const FilterCell = ({ name, value, text = value }: CellProps) => (
  <a class="cell" dir="auto" href={filterBy(name, value)} title={`Only ${text}`}>
    {text}
  </a>
);

interface RowProps {
  readonly row: Log;
  readonly isOpen: boolean;
}

const LogRow = memo(({ row, isOpen }: RowProps) => (
  <tr class={isOpen ? 'open' : ''} aria-current={isOpen ? 'true' : undefined} data-id={row.id}>
    <td class="time">
      <Time at={row.created_at} />
    </td>
    <td>
      <span class={`operation ${row.operation}`}>
        <FilterCell name="operation" value={row.operation} />
      </span>
    </td>
    <td class="entity">
      <FilterCell name="entity_type" value={row.entity_type} />{' '}
      <FilterCell name="entity_id" value={row.entity_id} text={nameOf(row.entity_type, row.entity_id)} />
    </td>
    <td class="actor">
      {row.actor_id === undefined ? (
        <span class="quiet">not known</span>
      ) : (
        <FilterCell name="actor_id" value={row.actor_id} text={nameOf(row.actor_type ?? '', row.actor_id)} />
      )}
    </td>
    <td class="message">
      <a class="open-row" dir="auto" href={withParameters({ event: row.id })}>
        {row.message}
      </a>
    </td>
  </tr>
));

/** Moves to the next or previous row. Where none has the focus, starts at the first one or at the open one. */
export const moveTo = (step: 1 | -1): void => {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('.list a.open-row')];
  const focused = links.findIndex((link) => link === document.activeElement);
  const opened = links.findIndex((link) => link.closest('tr')?.classList.contains('open'));
  const from = focused >= 0 ? focused : opened;
  const link = links[from < 0 ? 0 : Math.min(links.length - 1, Math.max(0, from + step))];
  link?.focus();
  link?.scrollIntoView({ block: 'nearest' });
};

/** Loads older rows once its end comes into view. */
const End = () => {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) void loadOlder();
    });
    if (ref.current !== null) observer.observe(ref.current);
    return () => observer.disconnect();
  }, [rows.value.length]);
  const last = rows.value.at(-1);
  if (next.value === undefined || last === undefined) return null;
  if (rows.value.length < MAX_ROWS)
    return (
      <div class="end" ref={ref}>
        <button type="button" onClick={() => void loadOlder()}>
          {isLoading.value ? 'Loading …' : 'Load older rows'}
        </button>
      </div>
    );
  const older = withParameters({ end_date: new Date(Date.parse(last.created_at) + 1).toISOString() });
  return (
    <div class="end">
      <p>The page keeps {MAX_ROWS.toLocaleString('en')} rows.</p>
      <button type="button" onClick={() => go(older)}>
        Continue from here
      </button>
    </div>
  );
};

/** Instead of rows. */
const Empty = () => {
  if (isLoading.value) return <p class="empty">Loading …</p>;
  if (next.value === undefined)
    return problem.value === undefined ? <p class="empty">No rows match these filters.</p> : null;
  return (
    <div class="end">
      <p>None of the newest rows match these filters.</p>
      <button type="button" onClick={() => void loadOlder()}>
        Load older rows
      </button>
    </div>
  );
};

export const LogTable = ({ opened }: { readonly opened: string | undefined }) => {
  if (rows.value.length === 0) return <Empty />;
  return (
    <>
      <table class="log">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Operation</th>
            <th scope="col">Entity</th>
            <th scope="col">Actor</th>
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {rows.value.map((row) => (
            <LogRow key={row.id} row={row} isOpen={row.id === opened} />
          ))}
        </tbody>
      </table>
      <End />
    </>
  );
};
