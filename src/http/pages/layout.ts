import { createHash } from 'node:crypto';

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

/** A template tag that escapes texts. */
export const html = (strings: TemplateStringsArray, ...parts: readonly Part[]): Html => ({
  html: strings.reduce((result, string, at) => result + htmlOf(parts[at - 1] ?? '') + string),
});

/** Renders `code` in the Markdown texts of OpenAPI. */
export const marked = (text: string): readonly Html[] =>
  text.split('`').map((part, at) => (at % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));

/** One small style sheet for every page, light and dark, from a phone to a wide screen. */
const STYLE = `
:root { color-scheme: light dark; --text: #1c2430; --soft: #566070; --line: #d8dde5; --back: #fff; --raised: #f5f7fa; --accent: #1f5fbf; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --soft: #9aa5b4; --line: #333c48; --back: #14181e; --raised: #1d232b; --accent: #7fb0ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem 1.25rem 4rem; font: 1rem/1.55 system-ui, sans-serif; color: var(--text); background: var(--back); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1rem 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .25rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 2rem 0 .25rem; }
h4 { font-size: .8rem; margin: 1rem 0 .25rem; color: var(--soft); text-transform: uppercase; letter-spacing: .04em; }
p { margin: .4rem 0; }
a { color: var(--accent); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; font-size: .95rem; }
code, pre { font-family: ui-monospace, Consolas, monospace; font-size: .875rem; }
code { background: var(--raised); border-radius: .25rem; padding: .1rem .3rem; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .75rem; margin: .4rem 0; white-space: pre-wrap; }
pre code { background: none; padding: 0; }
pre.copy { user-select: all; -webkit-user-select: all; }
.soft { color: var(--soft); }
.method { display: inline-block; min-width: 4rem; font-weight: 700; color: var(--accent); }
table { border-collapse: collapse; width: 100%; font-size: .925rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
td:not(:last-child) { white-space: nowrap; }
details { margin: .4rem 0; }
summary { cursor: pointer; color: var(--soft); }
@media (max-width: 40rem) {
  table, tbody, tr, tbody th, td { display: block; }
  thead { display: none; }
  tr { border-bottom: 1px solid var(--line); padding: .35rem 0; }
  tbody th, td { border: 0; padding: .05rem 0; }
}
`;

/** The pages have no scripts and load nothing; their inline style is allowed by its hash. */
export const PAGE_SECURITY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

/** Exactly what was hashed. */
const STYLE_ELEMENT: Html = { html: `<style>${STYLE}</style>` };

type Links = readonly (readonly [path: string, text: string])[];

const LINKS: Links = [
  ['/', 'Tenant Ledger'],
  ['/docs', 'API reference'],
  ['/problems', 'Problems'],
  ['/openapi.json', 'OpenAPI document'],
];

/** A complete page, with the links that every page of the API has, or others. */
export const page = (title: string, body: Html, links = LINKS): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${STYLE_ELEMENT}
      </head>
      <body>
        <nav>${links.map(([path, text]) => html`<a href="${path}">${text}</a>`)}</nav>
        <main>
          <h1>${title}</h1>
          ${body}
        </main>
      </body>
    </html>`.html;
