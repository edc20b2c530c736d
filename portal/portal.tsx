import type { ComponentChildren, FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { session, signOut } from './api.js';
import { ApplicationsPage } from './applications-page.js';
import { HelpDialog, isHelpOpen } from './help.js';
import { LogsPage } from './logs-page.js';
import { Alert } from './parts.js';
import { addressOf, follow, place } from './place.js';
import { SignIn } from './sign-in.js';
import { TenantPage } from './tenant-page.js';
import { ThenPage } from './then-page.js';
import { UsagePage } from './usage-page.js';

interface Page {
  readonly name: string;
  readonly title: string;
  readonly show: FunctionComponent;
}

const pages: readonly [Page, ...Page[]] = [
  { name: 'logs', title: 'Log', show: LogsPage },
  { name: 'then', title: 'Then', show: ThenPage },
  { name: 'applications', title: 'Applications', show: ApplicationsPage },
  { name: 'tenant', title: 'Tenant', show: TenantPage },
  { name: 'usage', title: 'Usage', show: UsagePage },
];

const Header = ({ application }: { readonly application: string }) => {
  const [failure, setFailure] = useState<string>();
  return (
    <header class="top">
      <a class="brand" href={addressOf('logs')}>
        Tenant Ledger
      </a>
      <nav aria-label="Pages">
        {pages.map(({ name, title }) => (
          <a key={name} href={addressOf(name)} aria-current={place.value.page === name ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <div class="who">
        <span class="quiet" dir="auto" title="The Application whose key you signed in with">
          {application}
        </span>
        <button type="button" onClick={() => (isHelpOpen.value = true)} aria-label="Keyboard shortcuts">
          ?
        </button>
        <button type="button" onClick={() => void signOut().then(setFailure)}>
          Sign out
        </button>
      </div>
      {failure === undefined ? null : <Alert text={`You are still signed in: ${failure}`} />}
    </header>
  );
};

const Frame = ({ children }: { readonly children: ComponentChildren }) => (
  <div class="frame" onClick={follow}>
    {children}
  </div>
);

export const Portal = () => {
  const now = session.value;
  const { title, show: Show } = pages.find(({ name }) => name === place.value.page) ?? pages[0];
  useEffect(() => {
    document.title = now.status === 'signed_in' ? `${title} · Tenant Ledger` : 'Sign in · Tenant Ledger';
  }, [title, now.status]);
  if (now.status === 'unknown')
    return (
      <main class="narrow" aria-busy="true">
        <p class="quiet">Loading …</p>
      </main>
    );
  if (now.status === 'signed_out') return <SignIn reason={now.reason} />;
  return (
    <Frame>
      <Header application={now.application.name} />
      <Show />
      <HelpDialog />
    </Frame>
  );
};
