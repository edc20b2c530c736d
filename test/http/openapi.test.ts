import addFormats from 'ajv-formats';
import Ajv2020 from 'ajv/dist/2020';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { programVersion } from '../../src/configuration';
import { routes } from '../../src/http/api';
import { headerNames } from '../../src/http/context';
import { openApiDocument } from '../../src/http/openapi/document';
import { route, type NamedRoute } from '../../src/http/route';
import { httpProblems, type HttpProblemCode, type Problem } from '../../src/problems';
import { faultsIn, type Seen } from '../support/described';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { serviceForTests } from '../support/service';

const run = promisify(execFile);

/** The validator is an ES module and reads the document from a file, so it is run on the command line. */
const verdict = async (document: unknown): Promise<unknown> => {
  const file = join(freshFolder(), 'openapi.json');
  writeFileSync(file, JSON.stringify(document));
  const script = `import { Validator } from '@seriousme/openapi-schema-validator';
    const validator = new Validator();
    const { valid, errors } = await validator.validate(process.argv[1]);
    console.log(JSON.stringify({ valid, errors, version: validator.version }));`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script, file]);
  return JSON.parse(stdout);
};

type Settings = Parameters<typeof openApiDocument>[1];
const described = (more: Partial<Settings> = {}, declared: readonly NamedRoute[] = routes) =>
  openApiDocument(declared, {
    headers: headerNames('SVC'),
    publicUrl: '',
    version: programVersion(),
    ...more,
  });

const service = serviceForTests();

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    expect(await verdict(described())).toEqual({ valid: true, version: '3.1' });
  });

  it('lists every declared route', () => {
    const declared = routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(operations.map(([name]) => name).toSorted()).toEqual(declared.toSorted());
    const ids = operations.map(([, { operationId }]) => operationId as unknown as string);
    expect(ids.toSorted()).toEqual([
      'checkKey',
      'countLogs',
      'createApplication',
      'createApplicationKey',
      'deleteApplication',
      'deleteApplicationKey',
      'deleteTenant',
      'exportLogs',
      'findApplicationKey',
      'getApplication',
      'getApplicationKey',
      'getCheckpoint',
      'getConsistencyProof',
      'getEvent',
      'getEventProof',
      'getEvidenceKey',
      'getOwnApplication',
      'getTenant',
      'getTenantUsageReport',
      'listApplicationKeyUses',
      'listApplicationKeys',
      'listApplications',
      'listEvents',
      'listLimits',
      'listLogEntityTypes',
      'listLogs',
      'listPermissions',
      'regenerateApplicationKey',
      'reportFacts',
      'updateApplication',
      'updateTenant',
      'verifyKey',
    ]);
  });

  interface Json {
    readonly [name: string]: Json;
  }
  const document = described() as unknown as Json;
  const operations = Object.entries(document['paths'] ?? {}).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => [`${method} ${path}`, operation] as const),
  );
  const inside = (value: unknown, path = ''): readonly (readonly [string, Json])[] =>
    typeof value !== 'object' || value === null
      ? []
      : [
          [path, value as Json] as const,
          ...Object.entries(value).flatMap(([name, one]) => inside(one, `${path}/${name}`)),
        ];
  const named = document['components']?.['schemas'] ?? {};
  const schemas = Object.entries(named);
  const asked = new Set([
    'TenantUpdate',
    'TenantSettingsUpdate',
    'ApplicationCreation',
    'ApplicationUpdate',
    'ApplicationKeyCreation',
    'KeyRegeneration',
    'KeyDigest',
    'KeyToVerify',
  ]);

  it('describes every member, and declares counts as 64-bit', () => {
    const members = schemas.flatMap(([name, schema]) =>
      inside(schema).flatMap(([, { properties = {} }]) =>
        Object.entries(properties).map(([member, one]) => ({ member: `${name}.${member}`, ...one })),
      ),
    ) as readonly Readonly<Record<string, unknown>>[];
    expect(members.length).toBeGreaterThan(50);
    expect(members.filter((member) => typeof member['description'] !== 'string')).toEqual([]);
    const counts = members.filter((member) => member['type'] === 'integer');
    expect(counts.filter(({ format }) => format !== 'int64')).toEqual([]);
  });

  it('lets responses gain members, and actors gain kinds', () => {
    for (const [name, schema] of schemas)
      if (!asked.has(name)) expect(JSON.stringify(schema)).not.toContain('"additionalProperties":false');
    const { actor_type: kind } = named['Log']?.['properties'] ?? {};
    expect(kind).toMatchObject({ type: 'string', examples: ['application', 'user'] });
    expect(kind).not.toHaveProperty('enum');
  });

  it('has one schema and one response for all problems', () => {
    const { properties: members = {} } = named['Problem'] ?? {};
    // Open, so that a client which was generated before survives a new one.
    expect(members['code']).toMatchObject({ type: 'string' });
    expect(members['code']).not.toHaveProperty('enum');
    for (const code of Object.keys(httpProblems)) expect(members['code']?.['description']).toContain(code);
    for (const [code, { members: own = [] }] of Object.entries<Problem>(httpProblems))
      for (const one of own) expect(members[one]?.['description']).toMatch(`\`${code}\`: `);
    for (const [, { responses = {} }] of operations)
      expect(responses['default']).toEqual({ $ref: '#/components/responses/Problem' });
  });

  it.each(operations)('%s names the codes of its conflicts', (operation, { responses = {} }) => {
    const codes = new Set(
      ([403, 404, 409, 412, 422] as const).flatMap((status) => {
        const { content, description = '' } = (responses[status] ?? {}) as {
          content?: Json;
          description?: string;
        };
        const own = content === undefined && description !== '' ? description.split(', ') : [];
        for (const code of own) expect(httpProblems[code as HttpProblemCode].status).toBe(status);
        return own;
      }),
    );
    const isWrite = !/^get |\/facts$|\/keys\/(verify|find)$/.test(operation);
    expect(codes.has('idempotency_key_reused')).toBe(isWrite);
    expect(codes.has('precondition_failed')).toBe(isWrite && operation !== 'post /applications');
    expect(codes.has('quota_exceeded')).toBe(/^post .*(applications|keys|regenerate)$/.test(operation));
  });

  it.each(operations)('%s has a tag, examples and shared headers', (_, operation) => {
    const names = (document['tags'] as unknown as { name: string }[]).map(({ name }) => name);
    expect(operation['tags']).toEqual([expect.stringMatching(new RegExp(`^(${names.join('|')})$`))]);
    for (const { headers = {}, content = {} } of Object.values(operation['responses'] ?? {})) {
      for (const [name, header] of Object.entries(headers))
        expect(header).toEqual({ $ref: `#/components/headers/${name}` });
      for (const media of Object.values(content)) expect(media).toHaveProperty('example');
    }
    for (const one of (operation['parameters'] ?? []) as unknown as Json[]) {
      expect(one).toMatchObject({
        description: expect.any(String),
        schema: { examples: [expect.anything()] },
      });
      // Generated clients send defaults, and some filters refuse a page.
      if ((one['name'] as unknown) === 'page') expect(one['schema']).not.toHaveProperty('default');
    }
  });

  it('shows the key in the examples of the three calls that create one', () => {
    const showing = operations
      .filter(([, { responses }]) => JSON.stringify(responses).includes('"key":"key_…"'))
      .map(([, { operationId }]) => operationId as unknown as string);
    expect(showing.toSorted()).toEqual([
      'createApplication',
      'createApplicationKey',
      'regenerateApplicationKey',
    ]);
  });

  it('has examples that match their schemas', () => {
    const ajv = new Ajv2020({ strict: false });
    addFormats(ajv);
    ajv.addSchema({ $id: 'document', ...document });
    const absolute = (schema: unknown): object =>
      JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components')) as object;
    const all = [...inside(document['paths']), ...inside(document['components'])].flatMap(([path, one]) => {
      const { schema, example, examples } = one;
      if (schema !== undefined && example !== undefined) return [[path, schema, example] as const];
      return Array.isArray(examples) ? examples.map((value: unknown) => [path, one, value] as const) : [];
    });
    expect(all.length).toBeGreaterThan(100);
    for (const [path, schema, value] of all)
      expect([path, ajv.validate(absolute(schema), value), ajv.errorsText()]).toEqual([
        path,
        true,
        'No errors',
      ]);
  });

  it('has one type for each response but that of a stream, and is short', () => {
    const several = operations
      .filter(([, { responses = {} }]) => Object.keys(responses['200']?.['content'] ?? {}).length > 1)
      .map(([name]) => name);
    expect(several).toEqual(['get /events']);
    expect(JSON.stringify(document).length).toBeLessThan(110_000);
  });

  it('uses no custom keywords', () => {
    expect(JSON.stringify(document)).not.toContain('validName');
    expect(named['TenantUpdate']).toMatchObject({
      properties: { name: { type: 'string', minLength: 1, maxLength: 200, pattern: '\\S' } },
      required: ['name'],
    });
  });

  it('describes the parameters of a path', () => {
    const response = { status: 204, description: 'X' } as const;
    const handle = async () => ({});
    const path = '/things/:id/parts/:part';
    const parts = route({ method: 'delete', path, summary: 'X', response, handle });
    const whole = described({}, [{ ...parts, operationId: 'deletePart', tag: 'Limits' }]);
    expect(whole).toMatchObject({
      paths: {
        '/things/{id}/parts/{part}': {
          delete: {
            parameters: expect.arrayContaining([expect.objectContaining({ name: 'part', in: 'path' })]),
          },
        },
      },
    });
  });

  it('reflects the settings', () => {
    const followed = described({ headers: headerNames('ACME'), publicUrl: 'https://api.example.com' });
    expect(followed).toMatchObject({
      servers: [{ url: 'https://api.example.com' }],
      components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'ACME-API-KEY' } } },
    });
    expect(JSON.stringify(followed)).not.toContain('SVC-');
  });

  it.each(['/openapi.json', '/openapi.json/'])('is served at %s without a key', async (path) => {
    const { status, json, headers } = await ask(`${service.url}${path}`);
    expect(status).toBe(200);
    expect(json).toEqual(JSON.parse(JSON.stringify(described())));
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('cache-control')).toBe('public, max-age=3600');
    const head = await ask(`${service.url}${path}`, { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers.get('content-length')).toBe(headers.get('content-length'));
  });
});

describe('the check of responses against the OpenAPI document reports', () => {
  let good: Seen;
  const asked = { url: 'http://x', path: '/permissions' };
  beforeAll(async () => {
    good = await ask(`${service.url}/permissions`, { key: service.key });
  });
  const without = (name: string): Headers => {
    const headers = new Headers(good.headers);
    headers.delete(name);
    return headers;
  };
  const withHeader = (name: string, value: string): Headers => {
    const headers = new Headers(good.headers);
    headers.set(name, value);
    return headers;
  };
  const rows = (): Record<string, unknown>[] => JSON.parse(good.text) as Record<string, unknown>[];

  it('nothing about a valid response', () => expect(faultsIn(good, asked)).toEqual([]));

  it.each<[string, () => Partial<Seen>, string]>([
    ['another status', () => ({ status: 202 }), 'status 202'],
    ['a bug', () => ({ status: 500 }), 'status 500'],
    ['no trace id', () => ({ headers: without('svc-trace-id') }), 'SVC-TRACE-ID is missing'],
    ['no Cache-Control', () => ({ headers: without('cache-control') }), 'Cache-Control is missing'],
    ['no nosniff', () => ({ headers: without('x-content-type-options') }), 'x-content-type-options is null'],
    ['an undeclared header', () => ({ headers: withHeader('x-powered-by', 'x') }), 'x-powered-by'],
    ['another type', () => ({ headers: withHeader('content-type', 'text/plain') }), 'text/plain'],
    ['an extra member', () => ({ text: JSON.stringify([{ ...rows()[0], x: 1 }]) }), 'additional'],
    ['a missing member', () => ({ text: JSON.stringify([{ type: 'a' }]) }), 'required'],
    ['another shape', () => ({ text: '{}' }), 'must be array'],
  ])('%s', (_, change, fault) => {
    expect(faultsIn({ ...good, ...change() }, asked).join('; ')).toContain(fault);
  });

  it('a problem with another code, member or header', async () => {
    const refused = await ask(`${service.url}/permissions`);
    expect(faultsIn(refused, asked)).toEqual([]);
    const faultsWith = (from: string, to: string): string =>
      faultsIn({ ...refused, text: refused.text.replaceAll(from, to) }, asked).join();
    expect(faultsWith('key_refused', 'nonsense')).toContain('nonsense is no code');
    expect(faultsWith('key_refused', 'not_found')).toContain('not_found has the status 404');
    expect(faultsWith('{', '{"errors":{},')).toContain('errors');
    expect(faultsWith('{', '{"secret":1,')).toContain('additional');
    const headers = new Headers(refused.headers);
    headers.delete('www-authenticate');
    expect(faultsIn({ ...refused, headers }, asked).join()).toContain('WWW-Authenticate is missing');
  });
});
