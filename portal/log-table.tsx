import { useEffect, useRef } from 'preact/hooks';
import { ALL_TIME, filters, hasSubject, scope, UNFILTERED } from './filters.js';
import { isLoading, loadOlder, lookedAt, MAX_ROWS, newAbove, next, problem, rows } from './log-rows.js';
import { actorOf } from './names.js';
import { clock, counted, TableHead, Time } from './parts.js';
import { go, parameter, timeStyle, withParameters } from './place.js';
import { dayOf, timeText } from './time.js';
import { happenedAt, Sentence, type Row } from './what-happened.js';

/** What stands for an operation, and its colour; its word is there for screen readers. */
const SIGNS: Readonly<Record<string, readonly [sign: string, tone: string]>> = {
  create: ['+', 'good'],
  update: ['±', 'warn'],
  delete: ['−', 'bad'],
  read: ['○', 'quiet'],
  use: ['●', 'quiet'],
  deny: ['!', 'bad'],
};

export const OperationTag = ({ operation }: { readonly operation: string }) => {
  const [sign, tone] = SIGNS[operation] ?? ['·', 'quiet'];
  return (
    <span class={`tag ${tone}`} title={operation}>
      <span aria-hidden="true">{sign}</span>
      <span class="hidden">{operation} </span>
    </span>
  );
};

/** Who did it; of what others report also that they do, and which service it was. */
const Actor = ({ row: { log, event } }: { readonly row: Row }) => {
  const { name } = event?.metadata.service ?? {};
  const reported = log.source === 'fact' ? `reported${name === undefined ? '' : ` by ${name}`}` : '';
  if (log.actor_id === undefined) return <span class="quiet">{reported || 'not known'}</span>;
  return (
    <>
      {actorOf(log)} <span class="quiet">{reported}</span>
    </>
  );
};

/** Its panel takes the focus as soon as it is there, or at once. */
const openRow = (id: string): void => {
  if (parameter('event') !== id) go(withParameters({ event: id }));
  document.getElementById('detail')?.focus();
};

interface RowProps {
  readonly row: Row;
  readonly isOpen: boolean;
}

/**
 * The whole row opens; the keyboard stops at it once. There may be thousands: since it reads a signal, it is only shown
 * anew if that, or one of its properties, has changed.
 */
const LogRow = ({ row, isOpen }: RowProps) => {
  const { id, created_at, operation, actor_id } = row.log;
  const happened = happenedAt(row);
  return (
    <tr
      class={`${isOpen ? 'open' : ''} ${row.isNew === true ? 'fresh' : ''}`}
      aria-current={isOpen ? 'true' : undefined}
      data-id={id}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        openRow(id);
      }}
    >
      <td class="time">
        <Time at={created_at} precision="clock" />
      </td>
      <td class="message">
        <OperationTag operation={operation} />
        <a class="open-row" dir="auto" href={withParameters({ event: id })}>
          <Sentence row={row} />
        </a>
        {happened === undefined ? null : (
          <span class="quiet">
            , happened <Time at={happened} />
          </span>
        )}
      </td>
      <td class="actor" dir="auto" title={actor_id}>
        <Actor row={row} />
      </td>
    </tr>
  );
};

/** The day of the rows below it; it stays in view. */
const DayLine = ({ at }: { readonly at: string }) => {
  const day = dayOf(at, timeStyle.value);
  const today = dayOf(new Date(clock.value).toISOString(), timeStyle.value);
  return (
    <tr class="day">
      <th colSpan={3} scope="rowgroup">
        {day === today ? 'Today, ' : ''}
        {timeText(at, timeStyle.value, 'weekday')}
      </th>
    </tr>
  );
};

/** The row after or before the one that has the focus, or else is open. Without either, the first. */
const rowFrom = (step: 1 | -1): HTMLAnchorElement | undefined => {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('.list a.open-row')];
  const focused = links.findIndex((link) => link === document.activeElement);
  const opened = links.findIndex((link) => link.closest('tr')?.classList.contains('open'));
  const from = focused >= 0 ? focused : opened;
  return links[from < 0 ? 0 : Math.min(links.length - 1, Math.max(0, from + step))];
};

/** Moves to the next or previous row, and what is open with it. A button in the panel keeps the focus. */
export const moveTo = (step: 1 | -1, keepsFocus = false): void => {
  const link = rowFrom(step);
  if (!keepsFocus) link?.focus({ preventScroll: true });
  const row = link?.closest('tr');
  row?.scrollIntoView({ block: 'nearest' });
  const id = row?.dataset['id'];
  if (parameter('event') === undefined || parameter('event') === id || id === undefined) return;
  go(withParameters({ event: id }), { replace: true });
};

/** Where nothing matches, what would find more. */
const Nothing = () => {
  const { start_date, end_date } = filters.value;
  const wider = [
    scope.value !== 'all' && (['Look at all rows', { source: 'all', event: undefined }] as const),
    (start_date ?? end_date) !== undefined && (['Look at all times', ALL_TIME] as const),
    hasSubject.value && (['Clear the filters', UNFILTERED] as const),
  ];
  return (
    <div class="end">
      <p>No rows match these filters.</p>
      <div class="buttons">
        {wider.map(
          (one) =>
            one && (
              <a key={one[0]} class="button" href={withParameters(one[1])}>
                {one[0]}
              </a>
            ),
        )}
      </div>
    </div>
  );
};

const MoreByTime = ({ last }: { readonly last: string }) => {
  const end = new Date(Date.parse(last) + 1).toISOString();
  const start = filters.value.start_date;
  return (
    <div class="end">
      <p>The page keeps {counted(MAX_ROWS, 'row')}.</p>
      <button
        type="button"
        onClick={() => go(withParameters({ range: undefined, start_date: start, end_date: end }))}
      >
        Continue from here
      </button>
    </div>
  );
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
  if (last !== undefined && rows.value.length >= MAX_ROWS && next.value !== undefined)
    return <MoreByTime last={last.created_at} />;
  if (last === undefined && problem.value === undefined && !isLoading.value) return <Nothing />;
  return (
    <p class="end" ref={ref}>
      {isLoading.value ? `Loading … ${counted(lookedAt.value, 'row')} looked at` : null}
    </p>
  );
};

/** The rows by day, and which of them are new. */
const lines = (opened: string | undefined) => {
  let day = '';
  return rows.value.flatMap((row) => {
    const { id, created_at } = row.log;
    const [before, mark] = [day, newAbove.value];
    day = dayOf(created_at, timeStyle.value);
    return [
      mark?.id === id && (
        <tr key="new" class="new-above">
          <td colSpan={3}>{mark.count.toLocaleString('en')} new</td>
        </tr>
      ),
      day !== before && <DayLine key={day} at={created_at} />,
      <LogRow key={id} row={row} isOpen={id === opened} />,
    ];
  });
};

export const LogTable = ({ opened }: { readonly opened: string | undefined }) => (
  <>
    {rows.value.length === 0 ? null : (
      <table class="log">
        <TableHead titles={[timeStyle.value === 'utc' ? 'UTC' : 'Local time', 'What happened', 'Who']} />
        <tbody>{lines(opened)}</tbody>
      </table>
    )}
    <End />
  </>
);
