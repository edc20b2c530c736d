import { useLoaded } from './loaded.js';
import { Time, Waiting } from './parts.js';
import type { UsageReport } from './wire.js';

interface BarProps {
  readonly label: string;
  readonly value: number;
  readonly of: number;
  readonly last?: string | undefined;
}

const Bar = ({ label, value, of, last }: BarProps) => (
  <li>
    <span>{label}</span>
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="6" />
      <rect class="bar" width={of === 0 ? 0 : Math.min(100, (value / of) * 100)} height="6" />
    </svg>
    <span>{value.toLocaleString('en')}</span>
    {last === undefined ? null : (
      <span class="quiet">
        last created <Time at={last} />
      </span>
    )}
  </li>
);

const Active = ({ report }: { readonly report: UsageReport['token_report'] }) => {
  const { monthly_active_tokens: active, included_monthly_active_tokens: included } = report;
  const percent = included === 0 ? undefined : Math.round((active / included) * 100);
  return (
    <section class="card">
      <h2>Active this month</h2>
      <p>
        {active.toLocaleString('en')} tokens were created, read or used this month (UTC).{' '}
        {percent === undefined
          ? 'The plan includes none.'
          : `That is ${percent} % of the ${included.toLocaleString('en')} that the plan includes.`}
      </p>
      <ul class="meters">
        <Bar label="Active" value={active} of={Math.max(active, included)} />
        <Bar label="Included" value={included} of={Math.max(active, included)} />
      </ul>
    </section>
  );
};

const ByType = ({ report }: { readonly report: UsageReport['token_report'] }) => {
  const types = Object.entries(report.metrics_by_type).toSorted(([, a], [, b]) => b.count - a.count);
  const most = Math.max(0, ...types.map(([, { count }]) => count));
  return (
    <section class="card">
      <h2>Tokens</h2>
      {types.length === 0 ? <p class="quiet">No tokens have been reported yet.</p> : null}
      <ul class="meters">
        {types.map(([type, { count, last_created_at: last }]) => (
          <Bar key={type} label={type} value={count} of={most} last={last} />
        ))}
      </ul>
    </section>
  );
};

export const UsagePage = () => {
  const [loaded] = useLoaded<UsageReport>('/tenants/self/reports/usage');
  return (
    <main class="page">
      <h1>Usage</h1>
      <Waiting loaded={loaded} />
      {loaded?.ok === true ? (
        <>
          <Active report={loaded.value.token_report} />
          <ByType report={loaded.value.token_report} />
        </>
      ) : null}
    </main>
  );
};
