import type { ComponentChildren } from 'preact';
import { headerPrefix, isOwnKey } from './api.js';
import { lookAgain, useEvery } from './loaded.js';
import { CopyButton } from './parts.js';
import { addressOf } from './place.js';
import type { Application, UsageReport } from './wire.js';

const LOOK_MS = 5_000;

interface FirstStepsProps {
  readonly total: number;
  readonly applications: readonly Application[];
  readonly report: UsageReport['token_report'] | undefined;
}

/** What to do with a new Tenant, ticked by what arrives. */
export const FirstSteps = ({ total, applications, report }: FirstStepsProps) => {
  const keys = applications.flatMap((one) => one.keys);
  const isCalled = keys.some(({ id, last_used_at: used }) => used !== undefined && !isOwnKey(id));
  const isShown = total < 2 || (total === 2 && !isCalled);
  useEvery(isShown ? LOOK_MS : undefined, lookAgain);
  if (!isShown) return null;
  const curl = `curl -s ${location.origin}/applications/key -H "${headerPrefix.value}-API-KEY: $KEY"`;
  const step = (title: string, isDone: boolean, how: ComponentChildren) => (
    <li>
      <h3>
        {title} {isDone ? <span class="good">✓ done</span> : null}
      </h3>
      <p>{how}</p>
    </li>
  );
  const isReported = Object.keys(report?.metrics_by_type ?? {}).length > 0;
  return (
    <section class="card">
      <h2>First steps</h2>
      <ol class="steps">
        {step('Create an Application for your service', total > 1, [
          'It gets a key of its own, and only the permissions that it needs. ',
          <a href={addressOf('applications', { open: 'new' })}>New Application …</a>,
        ])}
        {step('Call the API with its key', isCalled, [
          'The answer is the Application. Once the call has arrived, this is ticked: ',
          <code>{curl}</code>,
          <CopyButton text={curl} label="Copy" />,
        ])}
        {step('Have tokens reported', isReported, [
          'The services that keep them report what they do: POST /facts in the ',
          <a href="/docs">API reference</a>,
        ])}
      </ol>
    </section>
  );
};
