import { languages } from './reference-samples';

/** One small style sheet for every page, light and dark, from a phone to a wide screen. */
export const STYLE = `
:root { color-scheme: light dark; --text: #1c2430; --soft: #566070; --line: #d8dde5; --back: #fff; --raised: #f5f7fa; --accent: #1f5fbf; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --soft: #9aa5b4; --line: #333c48; --back: #14181e; --raised: #1d232b; --accent: #7fb0ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem 1.25rem 4rem; font: 1rem/1.55 system-ui, sans-serif; color: var(--text); background: var(--back); overflow-wrap: anywhere; }
body.wide { max-width: 100rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1rem 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .25rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2.5rem 0 .25rem; }
h4 { font-size: .8rem; margin: 1.25rem 0 .25rem; color: var(--soft); text-transform: uppercase; letter-spacing: .04em; }
h5 { font-size: .85rem; margin: .75rem 0 .25rem; }
:is(h2, h3) a { color: inherit; text-decoration: none; }
:is(h2, h3) a:hover { text-decoration: underline; }
p { margin: .4rem 0; }
a { color: var(--accent); }
header nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; font-size: .95rem; }
code, pre { font-family: ui-monospace, Consolas, monospace; font-size: .875rem; }
code { background: var(--raised); border-radius: .25rem; padding: .1rem .3rem; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .75rem; margin: .4rem 0; white-space: pre-wrap; }
pre code { background: none; padding: 0; }
pre.copy { user-select: all; -webkit-user-select: all; }
.soft { color: var(--soft); }
.method { font-weight: 700; color: var(--accent); }
table { border-collapse: collapse; width: 100%; font-size: .925rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
td:not(:last-child) { white-space: nowrap; }
td ul { margin: 0; padding: 0; list-style: none; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--accent); }
.members { margin: 0; padding: 0; list-style: none; }
.members li { padding: .4rem 0; border-top: 1px solid var(--line); font-size: .925rem; }
.members li p { margin: 0; }
.facts { color: var(--soft); }
.facts strong { color: var(--accent); font-weight: 600; }
.facts a { text-decoration: none; }
.facts a code { color: var(--text); font-weight: 600; }
.facts > span::before, .facts > strong::before { content: '· '; font-weight: 400; }
:target, .members li:target { scroll-margin-top: 3.5rem; }
.members li:target, section:target > h3 { background: var(--raised); }
.calls { position: sticky; top: 0; background: var(--back); border-bottom: 1px solid var(--line); z-index: 1; font-size: .925rem; }
.calls > div { display: none; max-height: 70vh; overflow-y: auto; padding-bottom: .75rem; }
.calls:has(.toggle input:checked) > div { display: block; }
.calls .toggle { display: block; padding: .5rem 0; font-weight: 600; }
.calls ul { margin: 0; padding: 0; list-style: none; }
.calls p { margin: .75rem 0 .1rem; font-weight: 600; }
.calls :is(li, p) a { display: block; padding: .15rem .4rem; border-radius: .25rem; text-decoration: none; color: inherit; }
.calls a:hover, .calls a[aria-current] { background: var(--raised); color: var(--accent); }
.calls fieldset { display: flex; flex-wrap: wrap; gap: .1rem .5rem; margin: 0 0 .5rem; padding: .25rem .4rem; font-size: .85rem; border: 1px solid var(--line); border-radius: .4rem; }
.calls legend { color: var(--soft); font-size: .8rem; }
.calls .search:not([hidden]) { display: block; margin-bottom: .5rem; color: var(--soft); font-size: .8rem; }
.calls .search input { display: block; width: 100%; padding: .35rem .5rem; font: inherit; font-size: .925rem; color: var(--text); background: var(--raised); border: 1px solid var(--line); border-radius: .4rem; }
.reference .group:not(:has(section:not([hidden]))), .calls .group:not(:has(li:not([hidden]))) { display: none; }
[hidden] { display: none !important; }
${languages.map((language) => `body:has(input[value=${language}]:checked) pre[data-language]:not([data-language=${language}]) { display: none; }`).join('\n')}
@media (min-width: 60rem) {
  .wide main { display: grid; grid-template-columns: 15rem minmax(0, 1fr); column-gap: 2.5rem; align-items: start; }
  .wide h1 { grid-column: 1 / -1; }
  .calls { max-height: 100vh; overflow-y: auto; border: 0; padding: .5rem 0; }
  .calls .toggle { display: none; }
  .calls > div { display: block; max-height: none; overflow: visible; }
  :target { scroll-margin-top: 1rem; }
}
@media (min-width: 75rem) {
  .columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 27rem); column-gap: 2rem; align-items: start; }
  .samples { position: sticky; top: 1rem; max-height: calc(100vh - 2rem); overflow-y: auto; }
}
@media (max-width: 40rem) {
  table, tbody, tr, tbody th, td { display: block; }
  thead { display: none; }
  tr { border-bottom: 1px solid var(--line); padding: .35rem 0; }
  tbody th, td { border: 0; padding: .05rem 0; }
}
`;
