import type { HeaderNames } from '../../configuration';
import { BASE_URL, html, page } from './layout';

/** Shown when the address of the service is opened in a browser. */
export const homePage = (version: string, { apiKey }: HeaderNames): string =>
  page(
    'Tenant Ledger',
    html`<p>
        This is the API of Tenant Ledger, version ${version}: tenants, permissions, audit logs and usage, kept
        as an append-only log of events.
      </p>
      <p>
        Send the key of an Application in the header <code>${apiKey}</code>. With the key in <code>KEY</code>:
      </p>
      <pre class="copy" tabindex="0"><code>curl -s ${BASE_URL}/tenants/self -H "${apiKey}: $KEY"</code></pre>
      <p>
        The <a href="/docs">API reference</a> describes every call, with samples to copy. Programs read the
        <a href="/openapi.json">OpenAPI document</a>. Every error names a code; the
        <a href="/problems">problems</a> say what each means and what to do.
      </p>`,
  );
