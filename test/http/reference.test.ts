import { ask } from '../support/http';
import { sendRaw } from '../support/raw';
import { startService, type Service } from '../support/service';

interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly const?: unknown;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly readOnly?: boolean;
}

interface Media {
  readonly schema: Schema;
  readonly 'x-line-schema'?: Schema;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly description: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly headers: Readonly<Record<string, Schema>>;
        readonly content?: Readonly<Record<string, Media>>;
      }
    >
  >;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<'schemas' | 'headers', Readonly<Record<string, Schema>>>>;
}

/** As a browser shows it, but for spaces. */
const shown = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replaceAll(/\s+/g, ' ');

const plain = (markdown: string): string => markdown.replaceAll(/ ?` ?/g, ' ').replaceAll(/\s+/g, ' ').trim();
const withoutSpaces = (text: string): string => text.replaceAll(/\s+/g, '');

let service: Service;
beforeAll(async () => {
  service = await startService();
});

describe('the API reference', () => {
  let document: Document;
  let page: string;
  beforeAll(async () => {
    document = (await ask(`${service.url}/openapi.json`)).json as Document;
    page = (await ask(`${service.url}/docs`)).text;
  });

  const at = (ref: string): Schema => {
    const [, , kind, name = ''] = ref.split('/');
    return document.components[kind as 'schemas'][name] as Schema;
  };
  const sectionOf = (id: string): string => {
    const [, section = ''] = new RegExp(`<section id="${id}"(.*?)</section>`, 's').exec(page) ?? [];
    return section;
  };
  const operations = (): readonly (readonly [string, string, Operation])[] =>
    Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => [method, path, operation] as const),
    );

  /** Every member inside, by its name with those that lead to it. */
  const membersIn = (schema: Schema, path = ''): readonly (readonly [string, Schema])[] => {
    const {
      properties = {},
      items,
      additionalProperties,
      oneOf = [],
    } = {
      ...(schema.$ref === undefined ? {} : at(schema.$ref)),
      ...schema,
    };
    return [
      ...Object.entries(properties).flatMap(([name, member]) => {
        const full = path === '' ? name : `${path}.${name}`;
        return [[full, member] as const, ...membersIn(member, full)];
      }),
      ...(items === undefined ? [] : membersIn(items, `${path}[]`)),
      ...(typeof additionalProperties === 'object' ? membersIn(additionalProperties, `${path}.*`) : []),
      ...oneOf.flatMap((variant) => membersIn(variant, path)),
    ];
  };

  /** What the text about a member must contain: its description, values, default and limits. */
  const factsOf = (schema: Schema): readonly string[] => [
    ...(schema.description === undefined ? [] : [plain(schema.description)]),
    ...[schema.enum ?? schema.items?.enum ?? [], schema.default ?? [], schema.const ?? []].flat().map(String),
    ...[schema.maximum ?? [], schema.maxLength ?? []].flat().map(String),
    ...[schema.type ?? []].flat(),
  ];
  /** A name may occur several times, as a parameter and as a member. */
  const entriesOf = (section: string, name: string): readonly string[] =>
    section
      .split('<li id="')
      .filter((item) => item.includes(`<code>${name}</code></a>`))
      .map((item) => withoutSpaces(shown(item)));
  const missingIn = (section: string, members: readonly (readonly [string, Schema])[]): readonly string[] =>
    members
      .filter(([name, schema]) => {
        const facts = factsOf(schema).map(withoutSpaces);
        return !entriesOf(section, name).some((entry) => facts.every((fact) => entry.includes(fact)));
      })
      .map(([name]) => name);

  it('has a section for every call, which the list of calls links to', () => {
    const [, list = ''] = /<nav class="calls"(.*?)<\/nav>/s.exec(page) ?? [];
    expect(operations().length).toBeGreaterThan(25);
    for (const [method, path, { operationId, summary }] of operations()) {
      const section = shown(sectionOf(operationId));
      expect([operationId, section]).toEqual([operationId, expect.stringContaining(summary)]);
      expect(section).toContain(`${method.toUpperCase()} ${path}`);
      expect(list).toContain(`href="#${operationId}"`);
    }
  });

  it('describes every parameter, header and member of every request', () => {
    const missing = operations().flatMap(([, , { operationId, parameters = [], requestBody }]) => {
      const section = sectionOf(operationId);
      const sent = membersIn(requestBody?.content['application/json']?.schema ?? {});
      const ignored = sent.filter(([, { readOnly }]) => readOnly === true).map(([name]) => name);
      for (const name of ignored) expect(shown(section)).toMatch(new RegExp(`ignored: .*\\b${name}\\b`));
      return missingIn(section, [
        ...parameters.map(({ name, description, schema }) => [name, { ...schema, description }] as const),
        ...sent.filter(([name]) => !ignored.includes(name)),
      ]).map((name) => `${operationId}: ${name}`);
    });
    expect(missing).toEqual([]);
  });

  it('describes every header and member of every successful response', () => {
    const common = sectionOf('headers');
    const missing = operations().flatMap(([, , { operationId, responses }]) =>
      Object.entries(responses)
        .filter(([status]) => Number(status) < 400)
        .flatMap(([status, { headers, content = {} }]) => {
          const section = sectionOf(operationId);
          expect(shown(section)).toContain(`Response ${status}`);
          const described = Object.entries(headers).map(([name, { $ref = '' }]) => [name, at($ref)] as const);
          const members = Object.values(content).flatMap((media) =>
            membersIn(media['x-line-schema'] ?? media.schema),
          );
          return [...missingIn(section + common, described), ...missingIn(section, members)].map(
            (name) => `${operationId}: ${name}`,
          );
        }),
    );
    expect(missing).toEqual([]);
  });

  it('links every problem of every call, with its headers, and describes the members of problems', () => {
    const common = sectionOf('headers');
    for (const [, , { operationId, responses }] of operations()) {
      const section = sectionOf(operationId);
      for (const [status, { headers, content = {} }] of Object.entries(responses)) {
        if (Number(status) < 400) continue;
        const row = section.split('<tr>').find((one) => one.includes(`<td><code>${status}</code>`)) ?? '';
        const schemas = Object.values(content).flatMap(({ schema }) => schema.oneOf ?? [schema]);
        expect(schemas.length).toBeGreaterThan(0);
        for (const { $ref = '' } of schemas) {
          const { code, title } = at($ref).properties ?? {};
          expect(row).toContain(`href="/problems/${String(code?.const)}"`);
          expect(shown(row)).toContain(String(title?.const));
        }
        for (const name of Object.keys(headers))
          expect(shown(row) + common).toMatch(new RegExp(`\\b${name}\\b`));
      }
    }
    const problems = Object.entries(document.components.schemas).filter(([name]) => name.endsWith('Problem'));
    const members = problems.flatMap(([, schema]) => membersIn(schema));
    const open = members.map(([name, schema]) => [name, { ...schema, const: undefined }] as const);
    expect(missingIn(sectionOf('problems'), open)).toEqual([]);
  });

  it('has no id twice', () => {
    const ids = Array.from(page.matchAll(/\bid="([^"]*)"/g), ([, id]) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  it('has a sample of every call in every language', () => {
    for (const [, , { operationId }] of operations()) {
      const found = Array.from(sectionOf(operationId).matchAll(/data-language="(\w+)"/g), ([, name]) => name);
      expect(found).toEqual(['curl', 'TypeScript', 'Python']);
    }
  });
});

describe('the address in the samples', () => {
  const addressIn = async (url: string, headers: Record<string, string> = {}) => {
    const fields = Object.entries({ Host: new URL(url).host, ...headers, Connection: 'close' });
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
    const [response] = await sendRaw(url, `GET /docs HTTP/1.1\r\n${lines.join('')}\r\n`);
    if (response === undefined) throw new Error('There is no response.');
    const [, address] = /export URL=(\S+) /.exec(response.text) ?? [];
    return { address, cached: response.headers.get('cache-control') };
  };

  it('is the one that the page was opened at, and is kept out of shared caches', async () => {
    const { port } = new URL(service.url);
    expect(await addressIn(service.url)).toEqual({ address: service.url, cached: 'private, max-age=3600' });
    for (const [host, address] of [
      ['api.example.com', 'http://api.example.com'],
      ['[::1]:8080', 'http://[::1]:8080'],
      ['x$(id)', `http://127.0.0.1:${port}`],
      ['"><script>', `http://127.0.0.1:${port}`],
    ] as const)
      expect((await addressIn(service.url, { Host: host })).address).toBe(address);
    expect((await addressIn(service.url, { 'X-Forwarded-Proto': 'https' })).address).toBe(service.url);
  });

  it('is https if a trusted proxy says so', async () => {
    const { url } = await startService({ TRUSTED_PROXIES: '1' });
    const headers = { Host: 'api.example.com', 'X-Forwarded-Proto': 'https' };
    expect((await addressIn(url, headers)).address).toBe('https://api.example.com');
  });

  it('is PUBLIC_URL if that is set', async () => {
    const { url } = await startService({ PUBLIC_URL: 'https://api.example.com' });
    expect(await addressIn(url, { Host: 'other.example.com' })).toEqual({
      address: 'https://api.example.com',
      cached: 'public, max-age=3600',
    });
  });
});
