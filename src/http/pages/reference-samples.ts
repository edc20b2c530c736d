import type { Call } from './reference-document';

/** What the samples need to know about a call. */
interface Request {
  readonly method: string;
  /** With examples in place of its parameters. */
  readonly path: string;
  /** Undefined: no key is needed. */
  readonly keyHeader: string | undefined;
  readonly body: unknown;
  readonly response: 'json' | 'text' | 'nothing';
}

const pathOf = ({ path, operation }: Call): string =>
  (operation.parameters ?? [])
    .filter((parameter) => parameter.in === 'path')
    .reduce(
      (filled, { name, example }) => filled.replace(`{${name}}`, encodeURIComponent(String(example))),
      path,
    );

const requestOf = (call: Call, keyHeader: string): Request => {
  const { method, operation } = call;
  const content = Object.values(operation.responses)[0]?.content;
  const withContent = content?.['application/json'] === undefined ? 'text' : 'json';
  return {
    method: method.toUpperCase(),
    path: pathOf(call),
    keyHeader: operation.security?.length === 0 ? undefined : keyHeader,
    body: operation.requestBody?.content['application/json'].example,
    response: content === undefined ? 'nothing' : withContent,
  };
};

const shellQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const curl = ({ method, path, keyHeader, body }: Request): string =>
  [
    'curl -s',
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    `"$URL${path}"`,
    ...(keyHeader === undefined ? [] : [`-H "${keyHeader}: $KEY"`]),
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${shellQuoted(JSON.stringify(body))}`]),
  ].join(' ');

const TYPESCRIPT_RESPONSES: Readonly<Record<Request['response'], string>> = {
  json: 'console.log(await response.json());',
  text: 'console.log(await response.text());',
  nothing: 'console.log(response.status);',
};

const typescript = ({ method, path, keyHeader, body, response }: Request): string => {
  const headers = [
    ...(keyHeader === undefined ? [] : [`    '${keyHeader}': \`\${process.env.KEY}\`,`]),
    ...(body === undefined ? [] : [`    'Content-Type': 'application/json',`]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    ...(headers.length === 0 ? [] : ['  headers: {', ...headers, '  },']),
    ...(body === undefined
      ? []
      : [`  body: JSON.stringify(${JSON.stringify(body, undefined, 2).replaceAll('\n', '\n  ')}),`]),
  ];
  const url = `\`\${process.env.URL}${path}\``;
  return [
    ...(options.length === 0
      ? [`const response = await fetch(${url});`]
      : [`const response = await fetch(${url}, {`, ...options, '});']),
    'if (!response.ok) throw new Error(await response.text());',
    TYPESCRIPT_RESPONSES[response],
  ].join('\n');
};

const PYTHON_CONSTANTS = new Map<unknown, string>([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
]);

/** The value as Python writes it, over several lines. */
const pythonOf = (value: unknown, margin: string): string => {
  const constant = PYTHON_CONSTANTS.get(value);
  if (constant !== undefined) return constant;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const inner = `${margin}    `;
  const [open, close, items] = Array.isArray(value)
    ? ['[', ']', value.map((item) => pythonOf(item, inner))]
    : [
        '{',
        '}',
        Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonOf(one, inner)}`),
      ];
  if (items.length === 0) return `${open}${close}`;
  return `${open}\n${items.map((item) => `${inner}${item},\n`).join('')}${margin}${close}`;
};

const PYTHON_RESPONSES: Readonly<Record<Request['response'], string>> = {
  json: 'print(json.load(response))',
  text: 'print(response.read().decode())',
  nothing: 'print(response.status)',
};

const python = ({ method, path, keyHeader, body, response }: Request): string => {
  const usesJson = body !== undefined || response === 'json';
  const headers = [
    ...(keyHeader === undefined ? [] : [`"${keyHeader}": os.environ["KEY"]`]),
    ...(body === undefined ? [] : ['"Content-Type": "application/json"']),
  ];
  return [
    ...(usesJson ? ['import json'] : []),
    'import os',
    'import urllib.error',
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    os.environ["URL"] + "${path}",`,
    ...(method === 'GET' ? [] : [`    method="${method}",`]),
    ...(headers.length === 0 ? [] : [`    headers={${headers.join(', ')}},`]),
    ...(body === undefined ? [] : [`    data=json.dumps(${pythonOf(body, '    ')}).encode(),`]),
    ')',
    'try:',
    '    with urllib.request.urlopen(request) as response:',
    `        ${PYTHON_RESPONSES[response]}`,
    'except urllib.error.HTTPError as error:',
    '    raise SystemExit(error.read().decode())',
  ].join('\n');
};

const LANGUAGES = { curl, TypeScript: typescript, Python: python };

export const languages: readonly string[] = Object.keys(LANGUAGES);

/** The same call in the languages that the API reference offers. Each works as is once URL and KEY are set. */
export const samplesOf = (call: Call, keyHeader: string) => {
  const request = requestOf(call, keyHeader);
  return Object.entries(LANGUAGES).map(([language, write]) => ({ language, code: write(request) }));
};
