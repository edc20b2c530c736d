import type { Result } from './api.js';
import { useLoaded } from './loaded.js';
import { Ago, Waiting } from './parts.js';
import { addressOf } from './place.js';
import { timeText } from './time.js';
import type { ActiveTokens, UsageReport } from './wire.js';

/** Amber from 80 % of what is included, red from all of it. */
const levelOf = (active: number, included: number): string => {
  if (active < included * 0.8 || active === 0) return '';
  return active < included ? 'warn' : 'bad';
};

interface MeterProps {
  readonly value: number;
  readonly of: number;
  /** What is included: a mark, and the colour says how near it is. */
  readonly included?: number;
}

const Meter = ({ value, of, included }: MeterProps) => {
  const at = (amount: number): number => (of === 0 ? 0 : (amount / of) * 100);
  const level = included === undefined ? '' : levelOf(value, included);
  return (
    <svg class={`meter ${level}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="6" />
      <rect class="bar" width={at(value)} height="6" />
      {included ? <line class="mark" x1={at(included)} x2={at(included)} y2="6" /> : null}
    </svg>
  );
};

/** `56 % of 50`. */
const shareText = (active: number, included: number): string =>
  included === 0
    ? 'none included'
    : `${Math.round((active / included) * 100)} % of ${included.toLocaleString('en')}`;

/** Those of this month, in a few words. */
export const Active = ({ loaded }: { readonly loaded: Result<UsageReport> | undefined }) => {
  if (loaded?.ok !== true) return <Waiting loaded={loaded} />;
  const { monthly_active_tokens: active, included_monthly_active_tokens: included } =
    loaded.value.token_report;
  return (
    <section class={`card tile ${levelOf(active, included)}`}>
      <h2>Active tokens this month</h2>
      <p class="number">{active.toLocaleString('en')}</p>
      <Meter value={active} of={Math.max(active, included)} included={included} />
      <a href={addressOf('usage')}>{shareText(active, included)}</a>
    </section>
  );
};

const Months = ({ months }: { readonly months: readonly ActiveTokens[] }) => {
  const amounts = months.map(
    (one) => [one.monthly_active_tokens, one.included_monthly_active_tokens] as const,
  );
  const most = Math.max(...amounts.flat());
  return (
    <section class="card">
      <h2>Active tokens</h2>
      <p class="quiet">Created, read or used in a month (UTC). The mark is what the plan included.</p>
      <ul class="meters">
        {amounts.toReversed().map(([active, included], i) => (
          <li key={i}>
            <span>{timeText(`${months.at(-1 - i)?.month}-01T00:00:00Z`, 'utc', 'month')}</span>
            <Meter value={active} of={most} included={included} />
            <span class="amount">{active.toLocaleString('en')}</span>
            <span class="quiet">{shareText(active, included)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
};

const ByType = ({ report }: { readonly report: UsageReport['token_report'] }) => {
  const types = Object.entries(report.metrics_by_type).toSorted(([, a], [, b]) => b.count - a.count);
  const most = Math.max(0, ...types.map(([, { count }]) => count));
  return (
    <section class="card">
      <h2>Tokens now</h2>
      {types.length === 0 ? <p class="quiet">No tokens have been reported yet.</p> : null}
      <ul class="meters">
        {types.map(([type, { count, last_created_at: last }]) => (
          <li key={type}>
            <span>{type}</span>
            <Meter value={count} of={most} />
            <span class="amount">{count.toLocaleString('en')}</span>
            <span class="quiet">{last && ['last created ', <Ago key="at" at={last} />]}</span>
          </li>
        ))}
      </ul>
    </section>
  );
};

export const UsagePage = () => {
  const [loaded] = useLoaded<UsageReport>('/tenants/self/reports/usage?months=12');
  return (
    <main class="page">
      <h1>Usage</h1>
      <Waiting loaded={loaded} />
      {loaded?.ok === true ? (
        <>
          <Months months={loaded.value.months ?? []} />
          <ByType report={loaded.value.token_report} />
        </>
      ) : null}
    </main>
  );
};
