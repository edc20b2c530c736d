import type { Schema } from '../routes/schema';
import { html, marked, page, type Html } from './layout';

/** The parts of our own OpenAPI document that the page uses. */
interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly example?: string | number;
  readonly schema?: Schema;
}

interface Content {
  readonly example?: unknown;
}

interface Response {
  readonly description: string;
  readonly content?: Readonly<Record<string, Content>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Document {
  readonly info: { readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly securitySchemes: { readonly apiKey: { readonly name: string } } };
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
  readonly keyHeader: string;
}

const shellQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const withExamples = ({ path, operation }: Call): string =>
  (operation.parameters ?? [])
    .filter((parameter) => parameter.in === 'path')
    .reduce(
      (filled, { name, example }) => filled.replace(`{${name}}`, encodeURIComponent(String(example ?? name))),
      path,
    );

/** Works as is once URL and KEY are set. */
const curlOf = (call: Call): string => {
  const { method, operation, keyHeader } = call;
  const body = operation.requestBody?.content['application/json']?.example;
  return [
    'curl -s',
    ...(method === 'get' ? [] : [`-X ${method.toUpperCase()}`]),
    `"$URL${withExamples(call)}"`,
    ...(operation.security?.length === 0 ? [] : [`-H "${keyHeader}: $KEY"`]),
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${shellQuoted(JSON.stringify(body))}`]),
  ].join(' ');
};

const exampleOf = (example: unknown): string =>
  typeof example === 'string' ? example : JSON.stringify(example, undefined, 2);

const PLACES = { path: 'in the path', query: 'query', header: 'header' } as const;

const parameterRow = ({ name, in: place, required, description = '', example, schema }: Parameter): Html =>
  html`<tr>
    <td><code>${name}</code></td>
    <td class="soft">${PLACES[place]}${required === true ? ', required' : ''}</td>
    <td>
      ${marked(description)}${
        example === undefined || example === '' || schema?.['enum'] !== undefined
          ? ''
          : html` <span class="soft">Example:</span> <code>${String(example)}</code>`
      }
    </td>
  </tr>`;

const parametersOf = ({ parameters = [] }: Operation): Html =>
  parameters.length === 0
    ? html``
    : html`<h4>Parameters</h4>
        <table>
          <tbody>
            ${parameters.map(parameterRow)}
          </tbody>
        </table>`;

const responseRow = ([status, { description }]: readonly [string, Response]): Html =>
  html`<tr>
    <td><code>${status}</code></td>
    <td>${marked(description)}</td>
  </tr>`;

const firstExample = ({ responses }: Operation): Html => {
  const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  const [[type, content] = []] = Object.entries(success?.content ?? {});
  return content?.example === undefined
    ? html``
    : html`<h4>Answer</h4>
        <p class="soft"><code>${type ?? ''}</code></p>
        <pre><code>${exampleOf(content.example)}</code></pre>`;
};

const callSection = (call: Call): Html => {
  const { method, path, operation } = call;
  return html`<h3 id="${operation.operationId}">
      <span class="method">${method.toUpperCase()}</span> <code>${path}</code>
    </h3>
    <p>${operation.summary}. ${marked(operation.description ?? '')}</p>
    <pre class="copy"><code>${curlOf(call)}</code></pre>
    ${parametersOf(operation)} ${firstExample(operation)}
    <details>
      <summary>All responses</summary>
      <table>
        <tbody>
          ${Object.entries(operation.responses).map(responseRow)}
        </tbody>
      </table>
    </details>`;
};

const callsOf = (document: Schema): readonly Call[] => {
  const { paths, components } = document as unknown as Document;
  const keyHeader = components.securitySchemes.apiKey.name;
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation, keyHeader })),
  );
};

/** The API reference for people, generated from the OpenAPI document. */
export const referencePage = (document: Schema): string => {
  const { info, servers, tags } = document as unknown as Document;
  const calls = callsOf(document);
  const [server] = servers;
  const url = server === undefined || server.url === '/' ? 'http://127.0.0.1:8080' : server.url;
  const used = tags.filter(({ name }) => calls.some(({ operation }) => operation.tags.includes(name)));
  return page(
    'API reference',
    html`<p class="soft">Version ${info.version}</p>
      <p>${marked(info.description)}</p>
      <p>The lines below use two variables. Set them first:</p>
      <pre class="copy"><code>URL=${url} KEY=key_…</code></pre>
      <nav>${used.map(({ name }) => html`<a href="#${name}">${name}</a>`)}</nav>
      ${used.map(
        ({ name, description }) =>
          html`<h2 id="${name}">${name}</h2>
            <p>${description}</p>
            ${calls.filter(({ operation }) => operation.tags.includes(name)).map(callSection)}`,
      )}`,
  );
};
