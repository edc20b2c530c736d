import { permissionsOf } from '../../src/domain/permissions';
import { beside, type Beside } from '../support/beside';
import { ask, type ApiResponse, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { startService, type Service } from '../support/service';

/** `If-Match` on the routes of keys: it refers to the Application. */
describe('a conditional request about keys', () => {
  let service: Service;
  let by: Beside;
  let key: string;
  let path: string;
  let keyId: string;

  const call = (at: string, asking: AskOptions = {}): Promise<ApiResponse> =>
    ask(`${service.url}${at}`, { key, ...asking });
  const tagOf = async (): Promise<string> => (await call(path)).headers.get('etag') ?? '';

  const routes: readonly [string, string, () => string, number][] = [
    ['POST', 'keys', () => `${path}/keys`, 201],
    ['POST', 'regenerate', () => `${path}/regenerate`, 200],
    ['DELETE', 'keys/{id}', () => `${path}/keys/${keyId}`, 204],
  ];
  const sendTo = (method: string, at: string, tag: string): Promise<ApiResponse> =>
    call(at, { method, headers: { 'If-Match': tag } });

  beforeAll(async () => {
    service = await startService();
    by = await beside(service);
  });
  beforeEach(async () => {
    const { tenantId } = await by.newTenant();
    const all = permissionsOf('management').map(({ type }) => type);
    ({ key } = await by.newApplication(tenantId, 'management', ...all));
    const made = await by.newApplication(tenantId, 'private', 'token:read');
    path = `/applications/${made.id}`;
    ({ keyId } = made);
  });

  describe.each(routes)('%s %s', (method, _, at, status) => {
    it('is accepted with *, with a list that has the current tag, and with the tag from before a key was added', async () => {
      const tag = await tagOf();
      const added = (await call(`${path}/keys`, { method: 'POST' })).json as { id: string };
      for (const sent of ['*', `"99", ${tag}`]) {
        expect((await sendTo(method, at(), sent)).status).toBe(status);
        keyId = added.id;
      }
    });

    it('is refused with the current entity tag once the Application has changed, and changes nothing', async () => {
      const tag = await tagOf();
      await call(path, { method: 'PUT', body: { name: 'Renamed' } });
      const [before, current] = [await by.count(), await tagOf()];
      for (const sent of [tag, `W/${current}`, '"99"']) {
        const refused = await sendTo(method, at(), sent);
        expectProblem(refused, { status: 412, code: 'precondition_failed' });
        expect(refused.headers.get('etag')).toBe(current);
      }
      const unquoted = await sendTo(method, at(), '3');
      expectProblem(unquoted, { status: 400, code: 'validation_failed', fields: ['If-Match'] });
      expect(await by.count()).toBe(before);
    });
  });
});
