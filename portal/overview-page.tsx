import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { loadNewest } from './all-applications.js';
import { holds, type Result } from './api.js';
import { FirstSteps } from './first-steps.js';
import { expiresSoon, isUnused, SOON_DAYS, UNUSED_DAYS } from './key-state.js';
import { useAsked, useLoaded } from './loaded.js';
import { actorOf, expectApplications, learnApplications } from './names.js';
import { Ago, counted, TableHead, Waiting } from './parts.js';
import { addressOf } from './place.js';
import { DAY_MS } from './time.js';
import { Active } from './usage-page.js';
import { Sentence } from './what-happened.js';
import type { Application, ApplicationPage, Key, LogPage, UsageReport } from './wire.js';

interface TileProps {
  readonly title: string;
  readonly loaded: Result<unknown> | undefined;
  readonly count: number;
  readonly children: ComponentChildren;
}

/** How many keys need a look, and which. */
const Tile = ({ title, loaded, count, children }: TileProps) => (
  <section class="card tile">
    <h2>{title}</h2>
    <Waiting loaded={loaded} />
    {loaded?.ok === true ? [<p class={count > 0 ? 'number warn' : 'number'}>{count}</p>, children] : null}
  </section>
);

const SHOWN = 3;

const Refused = () => {
  const [since] = useState(() => new Date(Date.now() - DAY_MS).toISOString());
  const query = { operation: 'deny', start_date: since };
  const [loaded] = useLoaded<LogPage>(`/logs?size=100&${new URLSearchParams(query).toString()}`);
  const rows = loaded?.ok === true ? loaded.value.data : [];
  const keys = new Set(rows.map((row) => row.entity_id));
  const owners = [...new Set(rows.map(actorOf))];
  return (
    <Tile title="Keys refused in 24 hours" loaded={loaded} count={keys.size}>
      {rows.length === 0 ? (
        <p class="quiet">Every request was allowed.</p>
      ) : (
        <p dir="auto">
          <a href={addressOf('logs', query)}>
            Of {owners.slice(0, SHOWN).join(', ')} {owners.length > SHOWN ? 'and others' : ''}
          </a>
        </p>
      )}
    </Tile>
  );
};

interface KeysProps extends Omit<TileProps, 'count' | 'children'> {
  readonly none: string;
  readonly found: readonly (readonly [Key, Application])[];
}

const Keys = ({ none, found, ...tile }: KeysProps) => (
  <Tile {...tile} count={found.length}>
    {found.length === 0 ? <p class="quiet">{none}</p> : null}
    {found.slice(0, SHOWN).map(([key, { id, name }]) => (
      <p key={key.id} dir="auto">
        <a href={addressOf('applications', { id })}>
          {key.name ?? 'a key'} of {name}
        </a>
        {expiresSoon(key) ? [' ', <Ago key="at" at={key.expires_at} />] : null}
      </p>
    ))}
    {found.length > SHOWN ? <p class="quiet">and {counted(found.length - SHOWN, 'other')}</p> : null}
  </Tile>
);

const LastChanges = () => {
  const [loaded] = useLoaded<LogPage>('/logs?source=decision&size=8');
  return (
    <section class="card">
      <div class="head">
        <h2>Last changes</h2>
        <a href={addressOf('logs')}>All of the log</a>
      </div>
      <Waiting loaded={loaded} />
      <table class="stacked flow">
        <TableHead titles={['What', 'Who', 'When']} />
        <tbody>
          {(loaded?.ok === true ? loaded.value.data : []).map((row) => (
            <tr key={row.id} dir="auto">
              <td>
                <a href={addressOf('logs', { event: row.id })}>
                  <Sentence row={{ log: row }} />
                </a>
              </td>
              <td data-label="By">{actorOf(row)}</td>
              <td>
                <Ago at={row.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
};

const loadAndLearn = async (abort: AbortSignal): Promise<Result<ApplicationPage>> => {
  expectApplications();
  const loaded = await loadNewest(abort);
  if (loaded.ok) learnApplications(loaded.value.data, loaded.value.pagination.total_items);
  return loaded;
};

/** What needs a look, and what has happened last. */
export const OverviewPage = () => {
  const [seesKeys, seesLog, seesUsage] = ['application:read', 'log:read', 'report:read'].map(holds);
  const [loaded, reload] = useAsked(seesKeys ? 'newest' : undefined, loadAndLearn);
  const [usage, reloadUsage] = useLoaded<UsageReport>(seesUsage ? '/tenants/self/reports/usage' : undefined);
  const page = loaded?.ok === true ? loaded.value : undefined;
  const { data = [], pagination } = page ?? {};
  const total = pagination?.total_items ?? 0;
  const keys = data.toReversed().flatMap((one) => one.keys.map((key) => [key, one] as const));
  const expiring = keys.filter(([key]) => expiresSoon(key));
  const report = usage?.ok === true ? usage.value.token_report : undefined;
  const lookAgain = (): void => [reload, reloadUsage].forEach((look) => look());
  return (
    <main class="page">
      <h1>Overview</h1>
      {page === undefined ? null : (
        <FirstSteps total={total} applications={data} report={report} onLook={lookAgain} />
      )}
      <div class="tiles">
        {seesLog ? <Refused /> : null}
        {seesKeys ? (
          <>
            <Keys
              title={`Keys that expire in ${SOON_DAYS} days`}
              none="None has to be replaced yet."
              loaded={loaded}
              found={expiring.toSorted(([one], [other]) =>
                (one.expires_at ?? '') < (other.expires_at ?? '') ? -1 : 1,
              )}
            />
            <Keys
              title={`Keys unused for ${UNUSED_DAYS} days`}
              none="Each was used since, or is newer."
              loaded={loaded}
              found={keys.filter(([key]) => isUnused(key))}
            />
          </>
        ) : null}
        {seesUsage ? <Active loaded={usage} /> : null}
      </div>
      {total > data.length ? (
        <p class="quiet">
          Keys are those of the newest {data.length} of {counted(total, 'Application')}.
        </p>
      ) : null}
      {seesLog ? <LastChanges /> : null}
      {seesKeys || seesLog || seesUsage ? null : (
        <p class="card">A key sees something here if it holds log:read, application:read or report:read.</p>
      )}
    </main>
  );
};
