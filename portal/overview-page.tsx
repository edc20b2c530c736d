import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { loadNewest } from './all-applications.js';
import { call, holds, type Result } from './api.js';
import { FirstSteps } from './first-steps.js';
import { expiresSoon, isUnused, SOON_DAYS, UNUSED_DAYS } from './key-state.js';
import { lookAgain, useAsked, useEvery, useLoaded } from './loaded.js';
import { actorOf, askForApplications, learnApplications } from './names.js';
import { Ago, counted, Table, Waiting } from './parts.js';
import { addressOf } from './place.js';
import { followEvents } from './tail.js';
import { DAY_MS } from './time.js';
import { Active } from './usage-page.js';
import { Sentence } from './what-happened.js';
import type { Application, ApplicationPage, Key, LedgerEvent, LogPage, UsageReport } from './wire.js';

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
const LOOK_MS = 60_000;

const Refused = () => {
  const [since] = useState(() => new Date(Date.now() - DAY_MS).toISOString());
  const query = { operation: 'deny', start_date: since };
  const path = `/logs?size=100&${new URLSearchParams(query).toString()}`;
  const { loaded, value, reload } = useLoaded<LogPage>(path);
  useEvery(LOOK_MS, reload);
  const rows = value?.data ?? [];
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

const LastChanges = ({ loaded, value }: ReturnType<typeof useLoaded<LogPage>>) => {
  const rows = (value?.data ?? []).map((log) => [
    <a href={addressOf('logs', { event: log.id })}>
      <Sentence row={{ log }} />
    </a>,
    actorOf(log),
    <Ago at={log.created_at} />,
  ]);
  return (
    <section class="card">
      <div class="head">
        <h2>Last changes</h2>
        <a href={addressOf('logs')}>All of the log</a>
      </div>
      <Waiting loaded={loaded} />
      <Table titles={['What', 'Who', 'When']} rows={rows} />
    </section>
  );
};

/** By then read models show what was decided. */
const SHOWN_MS = 500;

/** Looks again when something is decided. Whoever follows is also told at once that the key was revoked. */
const useChanges = (newest: string | undefined): void =>
  useEffect(() => {
    const abort = new AbortController();
    const follow = async (id: string): Promise<void> => {
      const event = await call<LedgerEvent>(`/events/${id}`, { signal: abort.signal });
      const listener = { onEvent: () => void setTimeout(lookAgain, SHOWN_MS), onState: () => undefined };
      if (!event.ok) return;
      await followEvents({ source: 'decision' }, event.value.position, listener, abort.signal);
    };
    if (newest !== undefined) void follow(newest).catch(() => undefined);
    return () => abort.abort();
  }, [newest === undefined]);

const loadAndLearn = async (abort: AbortSignal): Promise<Result<ApplicationPage>> => {
  const loaded = await loadNewest(abort);
  if (!loaded.ok) return loaded;
  const { data, pagination } = loaded.value;
  learnApplications(data);
  // Changes may be about older ones.
  if ((pagination.total_items ?? 0) > data.length) void askForApplications();
  return loaded;
};

/** What needs a look, and what has happened last. */
export const OverviewPage = () => {
  const [seesKeys, seesLog, seesUsage] = ['application:read', 'log:read', 'report:read'].map(holds);
  const { loaded, value: page } = useAsked(seesKeys ? 'newest' : undefined, loadAndLearn);
  const usage = useLoaded<UsageReport>(seesUsage ? '/tenants/self/reports/usage' : undefined);
  const changes = useLoaded<LogPage>(seesLog ? '/logs?source=decision&size=8' : undefined);
  useChanges(changes.value?.data[0]?.id);
  const { data = [], pagination } = page ?? {};
  const total = pagination?.total_items ?? 0;
  const keys = data.toReversed().flatMap((one) => one.keys.map((key) => [key, one] as const));
  const expiring = keys.filter(([key]) => expiresSoon(key));
  return (
    <main class="page">
      <h1>Overview</h1>
      {page === undefined ? null : (
        <FirstSteps total={total} applications={data} report={usage.value?.token_report} />
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
        {seesUsage ? <Active loaded={usage.loaded} /> : null}
      </div>
      {total > data.length ? (
        <p class="quiet">
          Keys are those of the newest {data.length} of {counted(total, 'Application')}.
        </p>
      ) : null}
      {seesLog ? <LastChanges {...changes} /> : null}
      {seesKeys || seesLog || seesUsage ? null : (
        <p class="card">A key sees something here if it holds log:read, application:read or report:read.</p>
      )}
    </main>
  );
};
