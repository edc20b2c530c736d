import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { serviceForTests } from '../support/service';

/** Copied from the specification, "Permission types (complete list)". */
const TABLE = `
| token:create | Create tokens | public, private |
| token:update | Update tokens | public, private |
| token:read | Read tokens | private |
| token:search | Search tokens | private |
| token:delete | Delete tokens | private |
| token:use | Use tokens in the service's own features (for example Proxy, Reactors) | private |
| tenant:read | Read Tenants | management |
| tenant:update | Update Tenants | management |
| tenant:delete | Delete Tenants | management |
| application:read | Read Applications | management |
| application:create | Create Applications | management |
| application:update | Update Applications and regenerate their API keys | management |
| application:delete | Delete Applications | management |
| log:read | Read audit logs | management |
| reactor:read | Read Reactors | management |
| reactor:create | Create Reactors | management |
| reactor:update | Update Reactors | management |
| reactor:delete | Delete Reactors | management |
| proxy:read | Read Proxies | management |
| proxy:create | Create Proxies | management |
| proxy:update | Update Proxies | management |
| proxy:delete | Delete Proxies | management |
| tenant:member:read | Read Tenant members | management |
| tenant:member:update | Update Tenant members | management |
| tenant:member:delete | Delete Tenant members | management |
| tenant:invitation:create | Create Tenant invitations | management |
| tenant:invitation:read | Read Tenant invitations | management |
| tenant:invitation:update | Update Tenant invitations | management |
| tenant:invitation:delete | Delete Tenant invitations | management |
| report:read | Read reports | management |
`;

const rows = TABLE.trim()
  .split('\n')
  .map((line) => {
    const [type, description, types] = line.slice(2, -2).split(' | ') as [string, string, string];
    return { type, description, application_types: types.split(', ') };
  });

describe('GET /permissions', () => {
  const service = serviceForTests();
  const get = (query = '') => ask(`${service.url}/permissions${query}`, { key: service.key });

  it('has the thirty rows of the specification, in the same order and words', async () => {
    const response = await get();
    expect(response.status).toBe(200);
    expect(rows).toHaveLength(30);
    expect(response.json).toEqual(rows);
    expect(Object.keys(response.json[0])).toEqual(['type', 'description', 'application_types']);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('private, no-cache');
  });

  it.each([
    ['public', 2],
    ['private', 6],
    ['management', 24],
  ])('can be filtered: %s has %i', async (type, count) => {
    const { status, json } = await get(`?application_type=${type}`);
    expect(status).toBe(200);
    expect(json).toHaveLength(count);
    expect(json).toEqual(rows.filter((row) => row.application_types.includes(type)));
  });

  it.each(['?application_type=', '?application_type', '?', '/', '/?application_type='])(
    'has all rows with %s',
    async (query) => {
      const response = await get(query);
      expect(response.status).toBe(200);
      expect(response.json).toEqual(rows);
    },
  );

  it.each([
    'Public',
    'admin',
    'public,private',
    '%20public',
    'null',
    '__proto__',
    'constructor',
    'public%00',
  ])('refuses the filter %s and names the three types', async (type) => {
    const response = await get(`?application_type=${type}`);
    expectProblem(response, 400, 'validation_failed', 'application_type');
    expect(response.json.errors.application_type).toEqual(['must be one of public, private, management']);
  });
});
