import { useEffect, useState } from 'preact/hooks';
import { call, textOf } from './api.js';
import { nameOf } from './names.js';
import { Alert, CopyButton } from './parts.js';
import { addressOf, withParameters } from './place.js';
import { utcText } from './time.js';
import type { Change, LedgerEvent, Log } from './wire.js';

const valueText = (value: unknown): string =>
  typeof value === 'string' ? value : value === null || value === undefined ? '' : JSON.stringify(value);

const who = (event: LedgerEvent): string => {
  if (event.actor === undefined) return 'Somebody';
  const name = nameOf(event.actor.type, event.actor.id);
  if (event.actor.type === 'user') return name === 'operator' ? 'The operator' : `The user ${name}`;
  return `The Application ${name}`;
};

const sentence = (event: LedgerEvent, { message, entity_type, entity_id }: Log): string =>
  `${message} (${entity_type} ${nameOf(entity_type, entity_id)}). ${who(event)} did it on ${utcText(event.recorded_at)}.`;

const Changes = ({ changes }: { readonly changes: readonly Change[] }) => (
  <section>
    <h3>Before and after</h3>
    <table class="changes">
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ field, from, to }) => (
          <tr key={field}>
            <th scope="row">{field}</th>
            <td>
              <del>{valueText(from)}</del>
            </td>
            <td>
              <ins>{valueText(to)}</ins>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);

interface Fact {
  readonly name: string;
  readonly value: string | undefined;
}

const Facts = ({ facts }: { readonly facts: readonly Fact[] }) => (
  <dl class="facts">
    {facts.map(({ name, value }) =>
      value === undefined ? null : (
        <div key={name}>
          <dt>{name}</dt>
          <dd dir="auto">{value}</dd>
        </div>
      ),
    )}
  </dl>
);

const Links = ({ event, log }: { readonly event: LedgerEvent; readonly log: Log }) => (
  <ul class="links">
    {event.trace_id === undefined ? null : (
      <li>
        <a href={addressOf('logs', [['trace_id', event.trace_id]])}>Everything of this request</a>
      </li>
    )}
    <li>
      <a
        href={addressOf('logs', [
          ['entity_type', log.entity_type],
          ['entity_id', log.entity_id],
        ])}
      >
        Everything about this {log.entity_type}
      </a>
    </li>
    {log.actor_id === undefined ? null : (
      <li>
        <a href={addressOf('logs', [['actor_id', log.actor_id]])}>Everything by this actor</a>
      </li>
    )}
    <li>
      <a href={addressOf('then', [['as_of', event.recorded_at]])}>The Tenant at this moment</a>
    </li>
  </ul>
);

const Event = ({ event }: { readonly event: LedgerEvent }) => {
  const { log, changes = [], metadata, actor } = event;
  const raw = JSON.stringify(event, undefined, 2);
  return (
    <>
      <p class="sentence" dir="auto">
        {log === undefined ? `${event.type}: this event cannot be read.` : sentence(event, log)}
      </p>
      <Facts
        facts={[
          { name: 'Entity', value: log === undefined ? undefined : `${log.entity_type} ${log.entity_id}` },
          { name: 'Actor', value: actor === undefined ? undefined : `${actor.type} ${actor.id}` },
          { name: 'Key', value: event.key_id },
          { name: 'Trace id', value: event.trace_id },
          { name: 'Client address', value: metadata.client?.address },
          { name: 'User agent', value: metadata.client?.userAgent },
          { name: 'Event', value: `${event.type}, ${event.position}` },
        ]}
      />
      {changes.length === 0 ? null : <Changes changes={changes} />}
      {log === undefined ? null : <Links event={event} log={log} />}
      <details>
        <summary>Raw event</summary>
        <CopyButton text={raw} label="Copy JSON" />
        <pre tabIndex={0}>{raw}</pre>
      </details>
    </>
  );
};

/** One row in full, beside the list. */
export const EventDetail = ({ id }: { readonly id: string }) => {
  const [event, setEvent] = useState<LedgerEvent>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    void call<LedgerEvent>(`/events/${encodeURIComponent(id)}`).then((found) =>
      found.ok ? setEvent(found.value) : setFailure(textOf(found.problem)),
    );
  }, [id]);
  return (
    <aside class="detail" aria-label="Details of the event">
      <div class="dialog-head">
        <h2 dir="auto">{event?.log?.message ?? 'Event'}</h2>
        <a class="button" href={withParameters({ event: undefined })} aria-label="Close the details">
          Close
        </a>
      </div>
      {failure === undefined ? null : <Alert text={failure} />}
      {event === undefined ? (
        failure === undefined && <p class="quiet">Loading …</p>
      ) : (
        <Event event={event} />
      )}
    </aside>
  );
};
