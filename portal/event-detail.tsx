import { useEffect, useRef, useState } from 'preact/hooks';
import { call, holds, textOf } from './api.js';
import { useLoaded } from './loaded.js';
import { takesFocus } from './log-table.js';
import { learnNames, nameOf } from './names.js';
import { Alert, CopyButton, Facts, TableHead, Time } from './parts.js';
import { addressOf, withParameters } from './place.js';
import { happenedAt, whatHappened } from './what-happened.js';
import type { Change, LedgerEvent, Source } from './wire.js';
import { titleOf, valueText } from './words.js';

const Changes = ({ changes }: { readonly changes: readonly Change[] }) => (
  <section>
    <h3>Before and after</h3>
    <table>
      <TableHead titles={['Field', 'Before', 'After']} />
      <tbody>
        {changes.map(({ field, from, to }) => (
          <tr key={field}>
            <th scope="row">{titleOf(field)}</th>
            <td dir="auto">
              <del>{valueText(from, field)}</del>
            </td>
            <td dir="auto">
              <ins>{valueText(to, field)}</ins>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);

/** A link to everything of the log about something, and its id to take along. */
const linked = (id: string | undefined, text: string, filter: Readonly<Record<string, string>>) =>
  id === undefined ? undefined : (
    <>
      <a href={addressOf('logs', filter)} title={id}>
        {text}
      </a>{' '}
      <CopyButton text={id} label="Copy id" />
    </>
  );

const sources: Readonly<Record<Source, string>> = {
  decision: 'decided by this service',
  access: 'what a key was used for',
  fact: 'reported by another service',
};

const named = (type = '', id = '', name = nameOf(type, id)): string => `${type} ${name}`;

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

const factsOf = (event: LedgerEvent, proof: string | undefined) => {
  const { log, actor, key_id, trace_id, metadata } = event;
  const { entity_type = '', entity_id = '' } = log ?? {};
  const { address, userAgent } = metadata.client ?? {};
  return [
    { name: 'Recorded', value: <Time at={event.recorded_at} /> },
    { name: 'Happened', value: <Time at={happenedAt(event) ?? event.recorded_at} /> },
    {
      name: 'Entity',
      value: linked(log?.entity_id, named(entity_type, entity_id), { entity_type, entity_id }),
    },
    { name: 'Source', value: log && sources[log.source] },
    {
      name: 'Actor',
      value: linked(actor?.id, named(actor?.type, actor?.id, actor?.name), { actor_id: actor?.id ?? '' }),
    },
    {
      name: 'Key',
      value: linked(key_id, nameOf('key', key_id ?? ''), { entity_type: 'key', entity_id: key_id ?? '' }),
    },
    { name: 'Request', value: linked(trace_id, trace_id ?? '', { trace_id: trace_id ?? '' }) },
    { name: 'Client', value: address && [address, userAgent].filter(Boolean).join(', ') },
    { name: 'Event', value: `${event.type}, ${event.position}` },
    { name: 'Evidence', value: proof && provenRow(event.id, proof) },
  ];
};

const Event = ({ event }: { readonly event: LedgerEvent }) => {
  const { changes = [] } = event;
  // Of an event that is not shown yet there is none.
  const [proof] = useLoaded<string>(`/events/${event.id}/proof`);
  const raw = JSON.stringify(event, undefined, 2);
  return (
    <>
      <Facts facts={factsOf(event, proof?.ok === true ? proof.value : undefined)} />
      {changes.length === 0 ? null : <Changes changes={changes} />}
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
  const [event, setEvent] = useState<LedgerEvent>();
  const [failure, setFailure] = useState<string>();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    void call<LedgerEvent>(`/events/${encodeURIComponent(id)}`).then((found) => {
      if (!found.ok) return setFailure(textOf(found.problem));
      learnNames([found.value]);
      setEvent(found.value);
    });
    const row = () => document.querySelector<HTMLElement>(`tr[data-id="${CSS.escape(id)}"] a`);
    if (takesFocus()) heading.current?.focus();
    return () => {
      if (document.activeElement === document.body) row()?.focus();
    };
  }, [id]);
  const title = event?.log === undefined ? 'Event' : whatHappened({ log: event.log, event });
  return (
    <aside class="detail" aria-label="Details of the event">
      <div class="head">
        <h2 id="detail" ref={heading} tabIndex={-1} dir="auto">
          {title}
        </h2>
        <a class="button" href={withParameters({ event: undefined })} aria-label="Close the details">
          Close
        </a>
      </div>
      <Alert text={failure} />
      {event === undefined && failure === undefined ? <p class="quiet">Loading …</p> : null}
      {event === undefined ? null : <Event event={event} />}
    </aside>
  );
};
