import type { ComponentChildren } from 'preact';
import type { Result } from './api.js';
import { useLoaded } from './loaded.js';
import { Ago, Waiting } from './parts.js';
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

interface MetersProps {
  readonly rows: readonly (MeterProps & { readonly label: string; readonly note: ComponentChildren })[];
}

const Meters = ({ rows }: MetersProps) => {
  const most = Math.max(0, ...rows.flatMap(({ value, included = 0 }) => [value, included]));
  return (
    <ul class="meters">
      {rows.map(({ label, note, ...row }) => (
        <li key={label}>
          <span>{label}</span>
          <Meter {...row} most={most} />
          <span class="amount">{row.value.toLocaleString('en')}</span>
          <span class="quiet">{note}</span>
        </li>
      ))}
    </ul>
  );
};

/** `56 % of 50`. */
const shareText = (active: number, included: number): string =>
  included === 0
    ? 'none included'
    : `${Math.round((active / included) * 100).toLocaleString('en')} % of ${included.toLocaleString('en')}`;

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
  const [loaded] = useLoaded<UsageReport>('/tenants/self/reports/usage?months=12');
  if (loaded?.ok !== true)
    return (
      <main class="page">
        <Waiting loaded={loaded} />
      </main>
    );
  const { token_report: report, months = [] } = loaded.value;
  const types = Object.entries(report.metrics_by_type).toSorted(([, a], [, b]) => b.count - a.count);
  return (
    <main class="page">
      <h1>Usage</h1>
      <section class="card">
        <h2>Active tokens</h2>
        <p class="quiet">Created, read or used in a month (UTC). The mark is what the plan included.</p>
        <Meters rows={months.toReversed().map((one) => ({ label: monthOf(one), ...meterOf(one) }))} />
      </section>
      <section class="card">
        <h2>Tokens now</h2>
        {types.length === 0 ? <p class="quiet">No tokens have been reported yet.</p> : null}
        <Meters
          rows={types.map(([label, { count: value, last_created_at: last }]) => ({
            label,
            value,
            note: ['last created ', <Ago key="at" at={last} />],
          }))}
        />
      </section>
    </main>
  );
};
