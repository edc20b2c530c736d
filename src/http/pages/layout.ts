import { hash } from 'node:crypto';
import { SEARCH_SCRIPT } from './search-script';
import { STYLE } from './style';

/** HTML that is safe to insert: text goes through `html`, which escapes it. */
export interface Html {
  readonly html: string;
}

type Part = Html | string | number | readonly Html[];

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const htmlOf = (part: Part): string => {
  if (typeof part === 'string' || typeof part === 'number') return escaped(String(part));
  return 'html' in part ? part.html : part.map((item) => item.html).join('');
};

/** Stands for the address of the service: not every client knows it by the same name. */
export const BASE_URL = '{base-url}';

/** A template tag that escapes texts. */
export const html = (strings: TemplateStringsArray, ...parts: readonly Part[]): Html => ({
  html: strings.reduce((result, string, at) => result + htmlOf(parts[at - 1] ?? '') + string),
});

/** Renders `code` in the Markdown texts of OpenAPI. */
export const marked = (text: string): readonly Html[] =>
  text.split('`').map((part, at) => (at % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));

const hashOf = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`;

const policyWith = (script: string): string =>
  `default-src 'none'; style-src ${hashOf(STYLE)}; ${script}frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

/** The pages load nothing; what is inline is allowed by its hash. Only the API reference has a script. */
export const PAGE_SECURITY = policyWith('');
export const REFERENCE_SECURITY = policyWith(`script-src ${hashOf(SEARCH_SCRIPT)}; `);

/** Exactly what was hashed. */
const STYLE_ELEMENT: Html = { html: `<style>${STYLE}</style>` };
const SCRIPT_ELEMENT: Html = { html: `<script type="module">${SEARCH_SCRIPT}</script>` };

type Links = readonly (readonly [path: string, text: string])[];

const LINKS: Links = [
  ['/', 'Tenant Ledger'],
  ['/docs', 'API reference'],
  ['/problems', 'Problems'],
  ['/openapi.json', 'OpenAPI document'],
];

/** A complete page, with the links that every page of the API has, or others. Only the API reference is wide, and can be searched. */
export const page = (
  title: string,
  body: Html,
  { links = LINKS, isReference = false }: { readonly links?: Links; readonly isReference?: boolean } = {},
): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${STYLE_ELEMENT}
      </head>
      <body class="${isReference ? 'wide' : 'narrow'}">
        <header>
          <nav aria-label="Pages">${links.map(([path, text]) => html`<a href="${path}">${text}</a>`)}</nav>
        </header>
        <main>
          <h1>${title}</h1>
          ${body}
        </main>
        ${isReference ? SCRIPT_ELEMENT : ''}
      </body>
    </html>`.html;
