import { useEffect, useRef } from 'preact/hooks';
import { filters } from './filters.js';
import { memo } from './memo.js';
import { actorOf, nameOf, sourceNames } from './names.js';
import { isLoading, loadOlder, lookedAt, MAX_ROWS, next, problem, rows, type Row } from './log-rows.js';
import { counted, TableHead, Time } from './parts.js';
import { go, parameter, withParameters } from './place.js';
import { happenedAt, whatHappened } from './what-happened.js';

const openRow = (id: string): void => {
  // Its panel is there already, or takes the focus as soon as it is.
  if (parameter('event') === id) document.getElementById('detail')?.focus();
  else go(withParameters({ event: id }));
};

interface RowProps {
  readonly row: Row;
  readonly isOpen: boolean;
}

/** The whole row opens; the keyboard stops at it once. */
const LogRow = memo(({ row, isOpen }: RowProps) => {
  const { id, created_at, operation, entity_type, entity_id, actor_id, source } = row.log;
  const happened = row.event === undefined ? undefined : happenedAt(row.event);
  return (
    <tr
      class={isOpen ? 'open' : ''}
      aria-current={isOpen ? 'true' : undefined}
      data-id={id}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        openRow(id);
      }}
    >
      <td class="time">
        <Time at={created_at} />
      </td>
      <td class={`operation ${operation}`}>{operation}</td>
      <td class="entity" dir="auto" title={entity_id}>
        {entity_type} <span class="quiet">{nameOf(entity_type, entity_id)}</span>
      </td>
      <td class="actor" dir="auto" title={actor_id}>
        {actor_id === undefined ? <span class="quiet">not known</span> : actorOf(row.log)}
      </td>
      <td class="source quiet">{sourceNames[source]}</td>
      <td class="message">
        <a class="open-row" dir="auto" href={withParameters({ event: id })}>
          {whatHappened(row)}
        </a>
        {happened === undefined ? null : (
          <span class="quiet">
            , happened <Time at={happened} />
          </span>
        )}
      </td>
    </tr>
  );
});

let isMoving = false;

/** Whether what opens takes the focus: while somebody moves through the rows, the list keeps it. */
export const takesFocus = (): boolean => {
  const takes = !isMoving;
  isMoving = false;
  return takes;
};

/** Moves to the next or previous row, and what is open with it. Where none has the focus, starts at the open one. */
export const moveTo = (step: 1 | -1): void => {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('.list a.open-row')];
  const focused = links.findIndex((link) => link === document.activeElement);
  const opened = links.findIndex((link) => link.closest('tr')?.classList.contains('open'));
  const from = focused >= 0 ? focused : opened;
  const link = links[from < 0 ? 0 : Math.min(links.length - 1, Math.max(0, from + step))];
  link?.focus();
  link?.scrollIntoView({ block: 'nearest' });
  const id = link?.closest('tr')?.dataset['id'];
  if (parameter('event') === undefined || parameter('event') === id || id === undefined) return;
  isMoving = true;
  go(withParameters({ event: id }), { replace: true });
};

/** What there is below the rows, or instead of them. Loads older ones once it comes into view. */
const End = () => {
  const ref = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    // After a failure it must come into view again.
    let mayLoad = problem.value === undefined;
    const observer = new IntersectionObserver((entries) => {
      if (mayLoad && entries.some(({ isIntersecting }) => isIntersecting)) void loadOlder();
      mayLoad = true;
    });
    if (ref.current !== null && rows.value.length > 0 && !isLoading.value) observer.observe(ref.current);
    return () => observer.disconnect();
  }, [rows.value.length, isLoading.value]);
  const last = rows.value.at(-1)?.log;
  if (last !== undefined && rows.value.length >= MAX_ROWS && next.value !== undefined) {
    const end = new Date(Date.parse(last.created_at) + 1).toISOString();
    return (
      <div class="end">
        <p>The page keeps {counted(MAX_ROWS, 'row')}.</p>
        <button
          type="button"
          onClick={() =>
            go(withParameters({ range: undefined, start_date: filters.value.start_date, end_date: end }))
          }
        >
          Continue from here
        </button>
      </div>
    );
  }
  const isNone = last === undefined && problem.value === undefined && !isLoading.value;
  return (
    <p class="end" ref={ref}>
      {isNone ? 'No rows match these filters.' : null}
      {isLoading.value ? `Loading … ${counted(lookedAt.value, 'row')} looked at` : null}
    </p>
  );
};

export const LogTable = ({ opened }: { readonly opened: string | undefined }) => (
  <>
    {rows.value.length === 0 ? null : (
      <table class="log">
        <TableHead titles={['Recorded', 'Operation', 'Entity', 'Actor', 'Source', 'What happened']} />
        <tbody>
          {rows.value.map((row) => (
            <LogRow key={row.log.id} row={row} isOpen={row.log.id === opened} />
          ))}
        </tbody>
      </table>
    )}
    <End />
  </>
);
