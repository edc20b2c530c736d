import type { Result } from './api.js';
import { useLoaded } from './loaded.js';
import { Ago, Table, Waiting } from './parts.js';
import { addressOf } from './place.js';
import { timeText } from './time.js';
import type { ActiveTokens, UsageReport } from './wire.js';

/** Amber from 80 % of what is included, red from all of it. */
const levelOf = (active: number, included: number): string => {
  if (included === 0 || active < included * 0.8) return '';
  return active < included ? 'warn' : 'bad';
};

interface MeterProps {
  readonly value: number;
  /** A mark, and the colour says how near it is. */
  readonly included?: number;
  readonly most?: number;
}

const Meter = ({ value, included = 0, most = Math.max(value, included) }: MeterProps) => {
  const at = (amount: number): number => (most === 0 ? 0 : (amount / most) * 100);
  return (
    <svg class={levelOf(value, included)} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="6" />
      <rect class="bar" width={at(value)} height="6" />
      {included > 0 ? <line class="mark" x1={at(included)} x2={at(included)} y2="6" /> : null}
    </svg>
  );
};

/** `56 % of 50`. */
const shareText = (active: number, included: number): string =>
  included === 0
    ? 'none included'
    : `${Math.round((active / included) * 100).toLocaleString('en')} % of ${included.toLocaleString('en')}`;

const mostOf = (amounts: readonly number[]): number => Math.max(0, ...amounts);

const meterOf = (one: Omit<ActiveTokens, 'month'>) => {
  const { monthly_active_tokens: value, included_monthly_active_tokens: included } = one;
  return { value, included, note: shareText(value, included) };
};

/** Those of this month, in a few words. */
export const Active = ({ loaded }: { readonly loaded: Result<UsageReport> | undefined }) => {
  if (loaded?.ok !== true) return <Waiting loaded={loaded} />;
  const { value, included, note } = meterOf(loaded.value.token_report);
  return (
    <section class="card tile">
      <h2>Active tokens this month</h2>
      <p class={`number ${levelOf(value, included)}`}>{value.toLocaleString('en')}</p>
      <Meter value={value} included={included} />
      <a href={addressOf('usage')}>{note}</a>
    </section>
  );
};

const monthOf = ({ month }: ActiveTokens): string => timeText(`${month}-01T00:00:00Z`, 'utc', 'month');

export const UsagePage = () => {
  const { loaded, value: usage } = useLoaded<UsageReport>('/tenants/self/reports/usage?months=12');
  if (usage === undefined)
    return (
      <main class="page">
        <Waiting loaded={loaded} />
      </main>
    );
  const { token_report: report, months = [] } = usage;
  const meters = months.toReversed().map((one) => ({ ...meterOf(one), month: monthOf(one) }));
  const types = Object.entries(report.metrics_by_type).toSorted(([, a], [, b]) => b.count - a.count);
  const most = mostOf(meters.flatMap(({ value, included }) => [value, included]));
  const mostOfType = mostOf(types.map(([, { count }]) => count));
  return (
    <main class="page">
      <h1>Usage</h1>
      <section class="card fixed">
        <h2>Active tokens</h2>
        <p class="quiet">Created, read or used in a month (UTC). The mark is what the plan included.</p>
        <Table
          titles={['Month', '', 'Tokens', 'Of the plan']}
          rows={meters.map(({ month, value, included, note }) => [
            month,
            <Meter value={value} included={included} most={most} />,
            value.toLocaleString('en'),
            note,
          ])}
        />
      </section>
      <section class="card fixed">
        <h2>Tokens now</h2>
        {types.length === 0 ? <p class="quiet">No tokens have been reported yet.</p> : null}
        <Table
          titles={['Type', '', 'Tokens', 'Last created']}
          rows={types.map(([type, { count, last_created_at: last }]) => [
            type,
            <Meter value={count} most={mostOfType} />,
            count.toLocaleString('en'),
            <Ago at={last} />,
          ])}
        />
      </section>
    </main>
  );
};
