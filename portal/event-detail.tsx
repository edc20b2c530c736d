import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { holds } from './api.js';
import { choose } from './filter-bar.js';
import { NO_SUBJECT, queryOf, SCOPES } from './filters.js';
import { useLoaded } from './loaded.js';
import { moveTo, OperationTag } from './log-table.js';
import { learnNames, nameOf } from './names.js';
import { clock, CopyButton, Facts, Table, Waiting, type Cells } from './parts.js';
import { addressOf, withParameters } from './place.js';
import { relativeText, timeText, zoneOf } from './time.js';
import { happenedAt, Sentence } from './what-happened.js';
import { titleOf, valueText, wordsOf } from './words.js';
import type { Change, LedgerEvent, Log, LogPage } from './wire.js';

const changeCells = ({ field, from, to }: Change): Cells => [
  titleOf(field),
  <del>{valueText(from, field)}</del>,
  <ins>{valueText(to, field)}</ins>,
];

/** What was created had nothing before: all that it was given. */
const givenCells = (data: LedgerEvent['data']): readonly Cells[] =>
  Object.entries(data)
    .flatMap(([field, to]: readonly [string, unknown]) =>
      to !== null && typeof to === 'object' && !Array.isArray(to)
        ? Object.entries(to)
        : [[field, to] as const],
    )
    .filter(([field]) => !/Id$|^digest/.test(field))
    .map(([field, to]) => [titleOf(field), valueText(to, field)]);

/** A moment where the viewer is and in UTC, how long ago it was, and the whole of it to take along. */
const Moment = ({ at }: { readonly at: string }) => (
  <>
    <time dateTime={at}>
      {timeText(at, 'local', 'exact')} <span class="quiet">{zoneOf('local')}</span>
      <br />
      {timeText(at, 'utc', 'exact')} <span class="quiet">UTC</span>
    </time>
    <br />
    {relativeText(at, clock.value)} <CopyButton text={at} label="Copy" />
  </>
);

type Filter = Readonly<Record<string, string>>;

/** A value, and a way to everything of the log that has it. */
const filterable = (what: string, filter: Filter, shown: ComponentChildren, id?: string) => (
  <>
    {shown}{' '}
    <span class="actions">
      {id === undefined ? null : <CopyButton text={id} label="Copy" />}
      <button
        type="button"
        class="small"
        aria-label={`Filter by this ${what}`}
        onClick={() => choose({ ...NO_SUBJECT, ...filter })}
      >
        Filter
      </button>
    </span>
  </>
);

const named = (type: string, id: string, name = nameOf(type, id)) =>
  type === 'application' ? (
    <>
      {type} <a href={addressOf('applications', { id })}>{name}</a>
    </>
  ) : (
    `${name.startsWith(`${type} of `) ? '' : `${wordsOf(type)} `}${name}`
  );

const saved = (name: string, text: string, title: string) => (
  <a href={`data:text/plain;charset=utf-8,${encodeURIComponent(text)}`} download={name}>
    {title}
  </a>
);

/** Which row it is, and the proof with its checkpoint to take along: this page has not checked them. */
const provenRow = (id: string, proof: string) => {
  const checkpoint = proof.slice(proof.indexOf('\n\n') + 2);
  const row = Number(/^index ([0-9]+)$/m.exec(proof)?.[1]) + 1;
  const size = Number(checkpoint.split('\n')[1]);
  return (
    <>
      Row {row.toLocaleString('en')} of {size.toLocaleString('en')}, proven by this{' '}
      {saved(`${id}.tlog-proof`, proof, 'proof')} and {saved('checkpoint.txt', checkpoint, 'checkpoint')}
    </>
  );
};

const factsOf = (event: LedgerEvent, log: Log, proof: string | undefined) => {
  const { actor, key_id: key, trace_id: trace } = event;
  const { client, service } = event.metadata;
  const { entity_type, entity_id, operation, source } = log;
  const happened = happenedAt({ log, event });
  const who = actor && named(actor.type, actor.id, actor.name);
  const entity = named(entity_type, entity_id);
  return {
    Recorded: <Moment at={event.recorded_at} />,
    Happened: happened && <Moment at={happened} />,
    Who: actor && filterable('actor', { actor_id: actor.id }, who, actor.id),
    With: key && filterable('key', { entity_type: 'key', entity_id: key }, named('key', key), key),
    From: client?.address,
    Agent: client?.userAgent,
    Entity: filterable('entity', { entity_type, entity_id }, entity, entity_id),
    Operation: filterable('operation', { operation }, wordsOf(operation)),
    Request: trace && filterable('request', { trace_id: trace }, <code>{trace}</code>, trace),
    Source: `${SCOPES[source][0]}${service?.name === undefined ? '' : `, ${service.name}`}`,
    Event: `${event.type}, ${event.position}`,
    Evidence: proof && provenRow(event.id, proof),
  };
};

const countCells = (counts: Readonly<Record<string, number>> = {}): readonly Cells[] =>
  Object.entries(counts).map(([name, count]) => [titleOf(name), valueText(count)]);

/** What a key was used for, what it was refused and what it would have needed, and from where. */
const KeyUses = ({ event: { data, metadata } }: { readonly event: LedgerEvent }) => {
  const { applicationId = '', missingPermissions = [] } = data;
  const clients = metadata.clients ?? [];
  return (
    <>
      {missingPermissions.length === 0 ? null : (
        <p>
          It tried what needs <code>{missingPermissions.join(', ')}</code>, which{' '}
          {named('application', applicationId)} lacked.
        </p>
      )}
      <Table titles={['Refused because', 'Times']} rows={countCells(data.refusals)} />
      <Table titles={['Used for', 'Times']} rows={countCells(data.operations)} />
      <Table
        titles={['From', 'Requests']}
        rows={clients.map(({ address = 'elsewhere', requests }) => [address, valueText(requests)])}
      />
    </>
  );
};

/** What else came of the same request. */
const SameRequest = ({ trace, id }: { readonly trace: string; readonly id: string }) => {
  const { value } = useLoaded<LogPage>(`/logs?${queryOf({ trace_id: trace })}`);
  const others = value?.data.filter((log) => log.id !== id) ?? [];
  return (
    <Table
      titles={['In the same request']}
      rows={others.map((log) => [
        <a href={withParameters({ event: log.id })}>
          <OperationTag operation={log.operation} /> <Sentence row={{ log }} />
        </a>,
      ])}
    />
  );
};

const Event = ({ event }: { readonly event: LedgerEvent }) => {
  const { changes = [], trace_id: trace, log } = event;
  // Of an event that is not shown yet there is none.
  const { value: proof } = useLoaded<string>(`/events/${event.id}/proof`);
  const raw = JSON.stringify(event, undefined, 2);
  return (
    <>
      <Table titles={['Field', 'Before', 'After']} rows={changes.map(changeCells)} />
      {log?.source === 'decision' && log.operation === 'create' ? (
        <Table titles={['Field', 'Value']} rows={givenCells(event.data)} />
      ) : null}
      {event.type === 'KeyUsed' ? <KeyUses event={event} /> : null}
      {log && <Facts facts={factsOf(event, log, proof)} />}
      {trace && <SameRequest trace={trace} id={event.id} />}
      {holds('tenant:read') ? (
        <p>
          <a href={addressOf('tenant', { as_of: event.recorded_at })}>The Tenant at this moment</a>
        </p>
      ) : null}
      <details>
        <summary>Raw event</summary>
        <CopyButton text={raw} label="Copy JSON" />
        <pre tabIndex={0}>{raw}</pre>
      </details>
    </>
  );
};

/** One row in full, beside the list. The keyboard goes there when it opens, and back when it closes. */
export const EventDetail = ({ id }: { readonly id: string }) => {
  const { loaded, value: event } = useLoaded<LedgerEvent>(`/events/${encodeURIComponent(id)}`);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => event && learnNames([event]), [event]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    const row = document.querySelector<HTMLElement>('.log .open a');
    return () => {
      if (document.activeElement === document.body) row?.focus({ preventScroll: true });
    };
  }, [id]);
  const log = event?.log;
  return (
    <aside class="detail" aria-label="Details of the event" aria-busy={event?.id !== id}>
      <div class="head">
        <span class="buttons">
          <button type="button" onClick={() => moveTo(-1, true)}>
            ‹ Previous
          </button>
          <button type="button" onClick={() => moveTo(1, true)}>
            Next ›
          </button>
        </span>
        <span class="buttons">
          <CopyButton text={location.href} label="Copy link" />
          <a class="button" href={withParameters({ event: undefined })} aria-label="Close the details">
            Close
          </a>
        </span>
      </div>
      <h2 id="detail" ref={heading} tabIndex={-1} dir="auto">
        {event === undefined || log === undefined ? 'Event' : <Sentence row={{ log, event }} />}
      </h2>
      <Waiting loaded={loaded} />
      {event && <Event key={event.id} event={event} />}
    </aside>
  );
};
