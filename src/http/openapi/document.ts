import type { ApiSettings } from '../context';
import { tags, type Route } from '../route';
import type { Schema } from '../schema';
import { headersFor, sharedHeaders } from './response-headers';
import { namedSchemas } from './named-schemas';
import { operation, PATH_PARAMETER } from './operation';
import { problemResponse } from './problem';

const SECURITY = 'apiKey';

const DESCRIPTION = [
  'Permissions, audit logs, tenants and the tenant usage report.\n',
  'Every path answers HEAD like GET, without a body, and OPTIONS with 204 and `Allow`.',
  'Without a valid key everything but this document, its viewer at `/docs` and `/problems/{code}` is 401; what does not exist is 404 or 405.',
  'Every error has a problem body (RFC 9457) with a stable `code`; `/problems/{code}` explains it.',
  'Responses may gain members in later releases.',
  'Lengths are counted in UTF-16 units: a character outside the Basic Multilingual Plane counts as two.',
].join('\n- ');

/** The OpenAPI 3.1 document, generated from the declared routes with the schemas that validate requests. */
export const openApiDocument = ({
  routes,
  headers: names,
  publicUrl,
  version,
}: Pick<ApiSettings, 'headers' | 'publicUrl' | 'version'> & {
  readonly routes: readonly Route[];
}): Schema => {
  const schemas = namedSchemas();
  const headers = headersFor(names);
  const paths: Record<string, Record<string, Schema>> = {};
  for (const route of routes)
    (paths[route.path.replace(PATH_PARAMETER, '/{$1}')] ??= {})[route.method] = operation(
      route,
      names,
      headers,
      schemas,
    );
  const responses = { Problem: problemResponse(headers, schemas) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tenant Ledger',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl === '' ? '/' : publicUrl }],
    security: [{ [SECURITY]: [] }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        [SECURITY]: {
          type: 'apiKey',
          in: 'header',
          name: names.apiKey,
          description: 'The key of an Application.',
        },
      },
      headers: sharedHeaders(names),
      responses,
      schemas: schemas.named(),
    },
  };
};
