import type { Schema } from '../routes/schema';

/** The keywords of JSON Schema that our OpenAPI document uses. */
export interface JsonSchema extends Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly oneOf?: readonly JsonSchema[];
  readonly readOnly?: boolean;
}

/** The parts of the document that the API reference shows. */
export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly example?: unknown;
  readonly schema: JsonSchema;
}

export interface Media {
  readonly schema?: JsonSchema;
  readonly example?: unknown;
  /** Of each line of a stream. */
  readonly 'x-line-schema'?: JsonSchema;
}

export interface Header {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, Media>>;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: { readonly 'application/json': Media };
  };
  readonly responses: Readonly<Record<string, Response>>;
}

export interface ApiDescription {
  readonly info: { readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: { readonly apiKey: { readonly name: string; readonly description: string } };
    readonly headers: Readonly<Record<string, Header>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
  };
}

export const callsOf = ({ paths }: ApiDescription) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );

export type Call = ReturnType<typeof callsOf>[number];

export const isSuccess = ([status]: readonly [string, Response]): boolean => Number(status) < 400;

const lastPart = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1);

/** The name of a schema that is referenced. */
export const nameOf = ({ $ref: ref }: JsonSchema): string | undefined =>
  ref === undefined ? undefined : lastPart(ref);

/** What a `$ref` refers to. A description beside it replaces that of the schema. */
export const resolved = ({ components }: ApiDescription, schema: JsonSchema): JsonSchema => {
  const { $ref: ref, ...beside } = schema;
  return ref === undefined ? schema : { ...components.schemas[lastPart(ref)], ...beside };
};

export const headersIn = (
  { components }: ApiDescription,
  { headers = {} }: Response,
): readonly (readonly [string, Header])[] =>
  Object.entries(headers).map(([name, { $ref }]) => [name, components.headers[lastPart($ref)] as Header]);

/** The problems that an error response may have: the code, title and members of each, by its schema. */
export const problemsIn = (description: ApiDescription, { content = {} }: Response) =>
  Object.values(content).flatMap(({ schema: declared = {} }) =>
    (declared.oneOf ?? [declared]).map((one) => {
      const schema = resolved(description, one);
      const { code, title } = schema.properties ?? {};
      return { code: String(code?.const), title: String(title?.const), schema };
    }),
  );
