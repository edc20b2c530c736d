import { effect } from '@preact/signals';
import type { ComponentChildren, FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { answered, holds, isPending, outage, SESSION, session, signOut, tenantName, textOf } from './api.js';
import { ApplicationsPage } from './applications-page.js';
import { leave } from './leaving.js';
import { LogsPage } from './logs-page.js';
import { OverviewPage } from './overview-page.js';
import { Choice, Notice } from './parts.js';
import { addressOf, follow, place, timeStyle } from './place.js';
import { remembered } from './remembered.js';
import { SignIn } from './sign-in.js';
import { TenantPage } from './tenant-page.js';
import { UsagePage } from './usage-page.js';

interface Page {
  readonly name: string;
  readonly title: string;
  /** Absent: it shows what the key may see. */
  readonly permission?: string;
  readonly show: FunctionComponent;
}

const pages: readonly Page[] = [
  { name: 'overview', title: 'Overview', show: OverviewPage },
  { name: 'logs', title: 'Log', permission: 'log:read', show: LogsPage },
  { name: 'applications', title: 'Applications', permission: 'application:read', show: ApplicationsPage },
  { name: 'tenant', title: 'Tenant', permission: 'tenant:read', show: TenantPage },
  { name: 'usage', title: 'Usage', permission: 'report:read', show: UsagePage },
];

interface NoteProps {
  readonly title: string;
  readonly children: ComponentChildren;
}

/** Instead of a page. */
const Note = ({ title, children }: NoteProps) => (
  <main class="page">
    <div class="card">
      <h1>{title}</h1>
      <p>{children}</p>
    </div>
  </main>
);

const maySee = ({ permission }: Page): boolean => permission === undefined || holds(permission);

const Content = ({ shown }: { readonly shown: Page | undefined }) => {
  if (shown === undefined)
    return (
      <Note title="There is no such page">
        The portal has nothing at this address. <a href={addressOf('')}>Go to its first page.</a>
      </Note>
    );
  if (maySee(shown)) return <shown.show />;
  return (
    <Note title={shown.title}>
      To see this, a key needs the permission <code>{shown.permission}</code>. Sign in with the key of an
      Application that has it, or have it granted.
    </Note>
  );
};

const shownPage = (): Page | undefined => pages.find(({ name }) => name === (place.value.page || 'overview'));

const TIMES = { local: 'Local time', utc: 'UTC' };
const THEMES = { system: 'System theme', light: 'Light', dark: 'Dark' };
const theme = remembered<keyof typeof THEMES>('theme', ['system', 'light', 'dark']);
effect(() => {
  document.documentElement.style.colorScheme = theme.value === 'system' ? '' : theme.value;
});

const skipHeader = (): void => {
  const main = document.querySelector('main');
  main?.setAttribute('tabindex', '-1');
  main?.focus();
};

/** The service is asked again by itself; what somebody is typing stays where it is. */
const Outage = () => <Notice role="status" text={outage.value && `${outage.value} Trying again …`} />;

const Pages = ({ shown }: { readonly shown: Page | undefined }) => (
  <nav aria-label="Pages">
    {pages.map((page) => (
      <a
        key={page.name}
        href={addressOf(page.name)}
        class={maySee(page) ? '' : 'quiet'}
        title={maySee(page) ? undefined : `Needs the permission ${page.permission}`}
        aria-current={shown === page ? 'page' : undefined}
      >
        {page.title}
      </a>
    ))}
  </nav>
);

interface HeaderProps {
  readonly application: string;
  readonly shown: Page | undefined;
}

const Header = ({ application, shown }: HeaderProps) => {
  const [failure, setFailure] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const endSession = async (): Promise<void> => {
    const failed = await signOut();
    setFailure(failed && `You are still signed in: ${textOf(failed.problem)}`);
    if (failed?.isTransient === true) void answered(SESSION).then(() => setFailure(undefined));
  };
  return (
    <header class="top">
      <button class="hidden" onClick={skipHeader}>
        Skip to the content
      </button>
      <a class="brand" href={addressOf('')} dir="auto">
        {tenantName.value ?? 'Tenant Ledger'}
      </a>
      <Pages shown={shown} />
      <button class="more" aria-expanded={isOpen} aria-controls="who" onClick={() => setOpen(!isOpen)}>
        More
      </button>
      <div id="who" class={isOpen ? 'who open' : 'who'}>
        <Choice label="Times" chosen={timeStyle} options={TIMES} />
        <Choice label="Theme" chosen={theme} options={THEMES} />
        <a href="/docs" target="_blank" rel="noreferrer">
          API reference
        </a>
        <span class="quiet" dir="auto" title="The Application whose key you signed in with">
          {application}
        </span>
        <button onClick={() => leave(() => void endSession())}>Sign out</button>
      </div>
      <Notice text={failure} />
      <Outage />
      <Notice role="status" text={isPending.value ? 'Saved; it appears in a moment.' : undefined} />
    </header>
  );
};

export const Portal = () => {
  const now = session.value;
  const shown = shownPage();
  const title = now.status === 'signed_in' ? (shown?.title ?? 'No such page') : 'Sign in';
  const owner = tenantName.value ?? 'Tenant Ledger';
  useEffect(() => void (document.title = `${title} · ${owner}`), [title, owner]);
  if (now.status === 'unknown')
    return (
      <main class="narrow" aria-busy="true">
        <p class="quiet">Loading …</p>
        <Outage />
      </main>
    );
  if (now.status === 'signed_out') return <SignIn reason={now.reason} />;
  return (
    <div class="frame" onClick={follow}>
      <Header application={now.application.name} shown={shown} />
      <Content shown={shown} />
    </div>
  );
};
