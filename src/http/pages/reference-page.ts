import type { Schema } from '../routes/schema';
import { BASE_URL, html, marked, page, type Html } from './layout';
import {
  callsOf,
  headersIn,
  isSuccess,
  nameOf,
  problemsIn,
  resolved,
  type ApiDescription,
  type Call,
  type Header,
  type JsonSchema,
  type Media,
  type Operation,
  type Parameter,
  type Response,
} from './reference-document';
import { memberList, membersOf, type Member } from './reference-members';
import { languages, samplesOf } from './reference-samples';

type Entry<T> = readonly [string, T];

const REQUEST = { required: 'required', optional: '' };
const RESPONSE = { required: '', optional: 'may be absent' };

const withDescription = (
  schema: JsonSchema,
  description: string,
  examples: readonly unknown[] = [],
): JsonSchema => ({
  ...schema,
  description,
  examples,
});

const PLACES = { path: 'In the path', query: 'Query parameters', header: 'Headers' } as const;
type Place = keyof typeof PLACES;

const parameterMember = ({ name, schema, description = '', example, required }: Parameter): Member => ({
  name,
  schema: withDescription(schema, description, [example].flat()),
  presence: required === true ? 'required' : '',
});

const parameterList = ({ operationId, parameters = [] }: Operation, place: Place): Html => {
  const members = parameters.filter((parameter) => parameter.in === place).map(parameterMember);
  return members.length === 0
    ? html``
    : html`<h4>${PLACES[place]}</h4>
        ${memberList(`${operationId}.${place}`, members)}`;
};

const bodyList = (description: ApiDescription, { operationId, requestBody }: Operation): Html => {
  if (requestBody === undefined) return html``;
  const members = membersOf(description, requestBody.content['application/json'].schema ?? {}, REQUEST);
  const isIgnored = ({ schema }: Member): boolean => schema.readOnly === true;
  return html`<h4>Body</h4>
    <p class="soft"><code>application/json</code>${requestBody.required ? '' : ', may be absent'}</p>
    ${memberList(
      `${operationId}.body`,
      members.filter((member) => !isIgnored(member)),
    )}
    <p>
      May be sent back as the response shows them, and are ignored:
      ${members.filter(isIgnored).map(({ name }, at) => html`${at === 0 ? '' : ', '}<code>${name}</code>`)}.
      Any other member is refused.
    </p>`;
};

const headerMember = ([name, { description, schema, required }]: Entry<Header>): Member => ({
  name,
  schema: withDescription(schema, description),
  presence: required ? '' : 'may be absent',
});

/** The headers that a response has besides those of every response. */
const ownHeaders = (description: ApiDescription, response: Response, common: readonly string[]) =>
  headersIn(description, response).filter(([name]) => !common.includes(name));

const contentList = (
  description: ApiDescription,
  prefix: string,
  [type, { schema = {}, 'x-line-schema': line }]: Entry<Media>,
): Html => {
  const whole = resolved(description, line ?? schema);
  const { oneOf, description: text = '' } = whole;
  const variants = oneOf ?? [line ?? schema];
  return html`<p class="soft"><code>${type}</code>${line === undefined ? '' : ', line by line'}</p>
    ${text === '' ? '' : html`<p>${marked(text)}</p>`}
    ${variants.map((variant) => {
      const members = membersOf(description, variant, RESPONSE);
      const name = oneOf === undefined ? undefined : nameOf(variant);
      return html`${name === undefined ? '' : html`<h5>${name}</h5>`}${memberList(`${prefix}.${name ?? 'member'}`, members)}`;
    })}`;
};

/** The same members are shown once, not again for each media type. */
const distinctContent = ({ content = {} }: Response): readonly Entry<Media>[] =>
  Object.entries(content).filter(
    ([, media], at, all) =>
      at === 0 ||
      JSON.stringify(media['x-line-schema'] ?? media) !==
        JSON.stringify(all[at - 1]?.[1]['x-line-schema'] ?? all[at - 1]?.[1]),
  );

const responseList = (
  description: ApiDescription,
  { operationId }: Operation,
  common: readonly string[],
  [status, response]: Entry<Response>,
): Html => {
  const headers = ownHeaders(description, response, common);
  const prefix = `${operationId}.${status}`;
  return html`<h4>Response ${status}</h4>
    <p>${marked(response.description)}</p>
    ${distinctContent(response).map((content) => contentList(description, prefix, content))}
    ${headers.length === 0 ? '' : html`<h5>Headers</h5>`}
    ${memberList(`${prefix}.header`, headers.map(headerMember))}`;
};

const problemRow = (
  description: ApiDescription,
  common: readonly string[],
  [status, response]: Entry<Response>,
): Html => {
  const headers = ownHeaders(description, response, common).map(([name]) => name);
  const named = problemsIn(description, response).map(
    ({ code, title }) => html`<li><a href="/problems/${code}">${code}</a> ${title}</li>`,
  );
  return html`<tr>
    <td><code>${status}</code></td>
    <td>
      <ul>
        ${named}
      </ul>
      ${headers.length === 0 ? '' : html`<p class="soft">Header: <code>${headers.join(', ')}</code></p>`}
    </td>
  </tr>`;
};

const problemTable = (description: ApiDescription, operation: Operation, common: readonly string[]): Html => {
  const errors = Object.entries(operation.responses).filter((entry) => !isSuccess(entry));
  return html`<details>
    <summary>Problems</summary>
    <table>
      <tbody>
        ${errors.map((entry) => problemRow(description, common, entry))}
      </tbody>
    </table>
  </details>`;
};

const exampleText = (example: unknown): string =>
  typeof example === 'string' ? example : JSON.stringify(example, undefined, 2);

const examples = ({ responses }: Operation): readonly Html[] =>
  Object.entries(responses)
    .filter(isSuccess)
    .flatMap(([status, { content = {} }]) =>
      Object.entries(content).map(
        ([type, { example }]) =>
          html`<h4>Response ${status}, ${type}</h4>
            <pre tabindex="0"><code>${exampleText(example)}</code></pre>`,
      ),
    );

const callSection = (description: ApiDescription, call: Call, common: readonly string[]): Html => {
  const { method, path, operation } = call;
  const { operationId: id, summary, responses } = operation;
  const successes = Object.entries(responses).filter(isSuccess);
  return html`<section id="${id}" aria-labelledby="${id}.title">
    <h3 id="${id}.title"><a href="#${id}">${summary}</a></h3>
    <p><span class="method">${method.toUpperCase()}</span> <code>${path}</code></p>
    <div class="columns">
      <div>
        <p>${marked(operation.description ?? 'Needs no key.')}</p>
        ${parameterList(operation, 'path')} ${parameterList(operation, 'query')}
        ${bodyList(description, operation)} ${parameterList(operation, 'header')}
        ${successes.map((entry) => responseList(description, operation, common, entry))}
        ${problemTable(description, operation, common)}
      </div>
      <div class="samples">
        ${samplesOf(call, description.components.securitySchemes.apiKey.name).map(
          ({ language, code }) =>
            html`<pre class="copy" data-language="${language}" tabindex="0"><code>${code}</code></pre>`,
        )}
        ${examples(operation)}
      </div>
    </div>
  </section>`;
};

/** The members of all problems; those that only some have say which. */
const problemMembers = (description: ApiDescription, calls: readonly Call[]): readonly Member[] => {
  const responses = calls.flatMap(({ operation }) => Object.values(operation.responses));
  const problems = new Map(
    responses
      .flatMap((response) => problemsIn(description, response))
      .map(({ code, schema }) => [code, membersOf(description, schema, RESPONSE)]),
  );
  const distinct = new Map([...problems.values()].flat().map((member) => [member.name, member]));
  return [...distinct.values()].map(({ name, schema }) => {
    const codes = [...problems].filter(([, members]) => members.some((member) => member.name === name));
    const isCommon = codes.length === problems.size;
    const open = { ...schema, const: undefined, pattern: undefined };
    return {
      name,
      schema: open,
      presence: isCommon ? '' : `only of ${codes.map(([code]) => code).join(', ')}`,
    };
  });
};

/** The headers that every response of every call has, if only sometimes. */
const commonHeaders = (description: ApiDescription, calls: readonly Call[]): readonly Entry<Header>[] => {
  const responses = calls.flatMap(({ operation }) => Object.values(operation.responses));
  const [first = { description: '' }] = responses;
  return headersIn(description, first).filter(([name]) =>
    responses.every(({ headers = {} }) => headers[name] !== undefined),
  );
};

const introduction = (
  description: ApiDescription,
  calls: readonly Call[],
  common: readonly Entry<Header>[],
): Html => {
  const { info, components } = description;
  const { name, description: text } = components.securitySchemes.apiKey;
  return html`<p class="soft">Version ${info.version}</p>
    <p>${marked(info.description)}</p>
    <section id="authentication">
      <h2><a href="#authentication">Authentication</a></h2>
      <p>
        Header <code>${name}</code>: ${text} The samples read the address and the key from the environment:
      </p>
      <pre class="copy" tabindex="0"><code>export URL=${BASE_URL} KEY=key_…</code></pre>
    </section>
    <section id="headers">
      <h2><a href="#headers">Headers of every response</a></h2>
      ${memberList('headers', common.map(headerMember))}
    </section>
    <section id="problems">
      <h2><a href="#problems">Problems</a></h2>
      <p>
        Every error has a body of the type <code>application/problem+json</code>. The
        <a href="/problems">list of problems</a> says what each code means and what to do.
      </p>
      ${memberList('problems', problemMembers(description, calls))}
    </section>`;
};

/** The calls of each tag. */
const groupsOf = ({ tags }: ApiDescription, calls: readonly Call[]) =>
  tags.map((tag) => ({ ...tag, calls: calls.filter(({ operation }) => operation.tags.includes(tag.name)) }));

const languageChoice = (): Html =>
  html`<fieldset>
    <legend>Samples</legend>
    ${languages.map(
      (language, at) =>
        html`<label
          ><input type="radio" name="language" value="${language}" ${at === 0 ? html`checked` : ''} />
          ${language}</label
        >`,
    )}
  </fieldset>`;

/** Stays in view. The script shows the search box; without it the list is whole. */
const callList = (groups: ReturnType<typeof groupsOf>): Html =>
  html`<nav class="calls" aria-label="Calls">
    <label class="toggle"><input type="checkbox" /> List of calls</label>
    <div>
      <label class="search" hidden
        >Search <input type="search" autocomplete="off" spellcheck="false" /><output></output
      ></label>
      ${languageChoice()}
      <ul>
        <li><a href="#authentication">Authentication</a></li>
        <li><a href="#headers">Headers</a></li>
        <li><a href="#problems">Problems</a></li>
      </ul>
      ${groups.map(
        ({ name, calls }) =>
          html`<div class="group">
            <p><a href="#${name}">${name}</a></p>
            <ul>
              ${calls.map(
                ({ operation }) =>
                  html`<li><a href="#${operation.operationId}">${operation.summary}</a></li>`,
              )}
            </ul>
          </div>`,
      )}
    </div>
  </nav>`;

/** The API reference for people, generated from the OpenAPI document. */
export const referencePage = (document: Schema): string => {
  const description = document as unknown as ApiDescription;
  const calls = callsOf(description);
  const common = commonHeaders(description, calls);
  const commonNames = common.map(([name]) => name);
  const groups = groupsOf(description, calls);
  return page(
    'API reference',
    html`${callList(groups)}
      <div class="reference">
        ${introduction(description, calls, common)}
        ${groups.map(
          (group) =>
            html`<div class="group">
              <h2 id="${group.name}"><a href="#${group.name}">${group.name}</a></h2>
              <p>${marked(group.description)}</p>
              ${group.calls.map((call) => callSection(description, call, commonNames))}
            </div>`,
        )}
      </div>`,
    { isReference: true },
  );
};
