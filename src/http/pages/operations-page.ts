import type { UnreadableTenant } from '../../ledger/fold';
import type { RateLimitsStatus } from '../../limits/rate-limits';
import type { LedgerStatus, RunningRebuild } from '../../projecting/status';
import { html, page, type Html } from './layout';

/** How long the event loop was late in the last minute or two, in milliseconds. */
export interface EventLoopDelay {
  readonly p99: number;
  readonly max: number;
}

/** What the operator's page shows. */
export interface OperationsView {
  readonly version: string;
  readonly at: string;
  /** The address that the page was opened at. */
  readonly host: string;
  /** Whether it is ready, in a sentence. */
  readonly summary: string;
  readonly readModelStore: string;
  /** Undefined: it is not known now. */
  readonly status: LedgerStatus | undefined;
  readonly rebuilds: readonly RunningRebuild[];
  readonly limits: RateLimitsStatus | undefined;
  readonly eventLoop: EventLoopDelay;
}

type Cell = Html | string | number;

const table = (names: readonly string[], rows: readonly (readonly Cell[])[]): Html =>
  html`<table>
    <thead>
      <tr>
        ${names.map((name) => html`<th scope="col">${name}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            ${row.map((cell) => html`<td>${cell}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;

/** What has no value is left out. */
const facts = (rows: readonly (readonly [string, Cell | undefined])[]): Html =>
  html`<table>
    <tbody>
      ${rows
        .filter(([, value]) => value !== undefined)
        .map(
          ([name, value = '']) =>
            html`<tr>
              <th scope="row">${name}</th>
              <td>${value}</td>
            </tr>`,
        )}
    </tbody>
  </table>`;

/** A click selects it. */
const command = (text: string): Html => html`<pre class="copy"><code>${text}</code></pre>`;

const section = (title: string, body: Html, ...commands: readonly string[]): Html =>
  html`<h2>${title}</h2>
    ${body} ${commands.map(command)}`;

const unknown = html`<p>Not known now.</p>`;

const stores = ({ status, readModelStore }: OperationsView): Html =>
  facts([
    ['Event log', status?.log.store],
    ['Its identity', status?.log.identity],
    ['Its head', status && (status.log.head ?? 'none: it is empty')],
    ['Trouble', status?.log.trouble],
    ['Read models', readModelStore],
  ]);

const projections = ({ projector, projections: all }: LedgerStatus): Html =>
  html`${table(
      ['Projection', 'Generation', 'Position', 'Lag', 'Parked'],
      all.map(({ projection, generation, position, lag_events, lag_seconds, parked }) => [
        projection,
        generation ?? 'not built yet',
        position ?? 'none',
        `${lag_events} events, ${lag_seconds.toFixed(1)} s`,
        `${parked.length} tenants`,
      ]),
    )}
    <p>Projecting process: ${projector ?? 'none'}.</p>
    ${all.flatMap(({ damage }) => (damage === undefined ? [] : [html`<p><strong>${damage}</strong></p>`]))}`;

const wayOut = ({ tenant_id, event_id }: Pick<UnreadableTenant, 'tenant_id' | 'event_id'>): Html =>
  event_id === null
    ? command(`tenant-ledger audit --tenant ${tenant_id} --format pretty`)
    : html`${command(`tenant-ledger projections retry --tenant ${tenant_id}`)}
      ${command(`tenant-ledger projections set-aside ${event_id} --reason "REASON"`)}`;

const parked = ({ projections: all, decisions }: LedgerStatus): Html => {
  const waiting = all.flatMap(({ projection, parked: tenants }) =>
    tenants.map((tenant) => [projection, tenant, tenant.since] as const),
  );
  const refused = decisions.parked.map((tenant) => ['decisions', tenant, ''] as const);
  if (waiting.length + refused.length === 0) return html`<p>None.</p>`;
  return table(
    ['In', 'Tenant', 'Since', 'Why, and the ways out'],
    [...refused, ...waiting].map(([where, tenant, since]) => [
      where,
      tenant.tenant_id,
      since,
      html`${tenant.reason} ${wayOut(tenant)}`,
    ]),
  );
};

const rebuilds = (running: readonly RunningRebuild[]): Html =>
  running.length === 0
    ? html`<p>None is running.</p>`
    : table(
        ['Projection', 'Step', 'Progress', 'By'],
        running.map(({ projection, step, progress, holder }) => [
          projection,
          step?.step ?? 'starting',
          `${Math.floor(progress * 100)} %`,
          holder,
        ]),
      );

const limitsOf = (limits: RateLimitsStatus): Html =>
  facts([
    ['Blocks since the start', limits.blocks_started],
    ['Counted', limits.shared ? 'together with the other instances' : 'by this process alone'],
    ['Trouble', limits.trouble],
    ['Counters in memory', limits.counters_kept],
    ['Counters dropped for room', limits.counters_dropped],
    ['Counted alone, once per request and limit', limits.counted_alone],
    ['Not counted, once per request and limit', limits.uncounted],
  ]);

const delayOf = ({ p99, max }: EventLoopDelay): Html =>
  facts([
    ['99 of 100 turns, at most', `${p99.toFixed(1)} ms`],
    ['The longest', `${max.toFixed(1)} ms`],
  ]);

/** For the operator, at `/` of the operations listener. It changes nothing, and has no script. */
export const operationsPage = (view: OperationsView): string => {
  const { version, at, host, summary, status, limits, eventLoop } = view;
  return page(
    'Operations',
    html`<p><strong>${summary}</strong></p>
      <p class="soft">
        Tenant Ledger ${version}, this process, at ${at}. The page does not change by itself: load it again.
      </p>
      ${section('Stores', stores(view), 'tenant-ledger status', 'tenant-ledger doctor')}
      ${section(
        'Projections',
        status === undefined ? unknown : projections(status),
        'tenant-ledger projections status',
        'tenant-ledger projections verify',
      )}
      ${section(
        'Parked tenants',
        status === undefined ? unknown : parked(status),
        'tenant-ledger projections parked',
      )}
      ${section('Rebuilds', rebuilds(view.rebuilds), 'tenant-ledger projections rebuild --all --dry-run')}
      ${section('Rate limits', limits === undefined ? unknown : limitsOf(limits), 'tenant-ledger limits')}
      ${section(
        'Delay of the event loop, in the last minute or two',
        delayOf(eventLoop),
        `curl -s http://${host}/metrics | grep nodejs_eventloop`,
      )}`,
    {
      links: [
        ['/', 'Operations'],
        ['/livez', 'livez'],
        ['/readyz', 'readyz'],
        ['/metrics', 'metrics'],
      ],
    },
  );
};
