import type { ApiContext, Step } from '../api-context';
import { openApiDocument, type Described } from './document';

const PATH = '/openapi.json';

/** The description of the API, for everybody. It is made when somebody first asks for it. */
export const openApiPage = (described: Described): Step => {
  let made: string | undefined;

  const show = (ctx: ApiContext): void => {
    made ??= JSON.stringify(openApiDocument(described));
    ctx.state.route = PATH;
    ctx.status = 200;
    ctx.set('Cache-Control', 'public, max-age=3600');
    ctx.body = made;
    ctx.type = 'application/json; charset=utf-8';
  };

  return async (ctx, next) => {
    if (ctx.state.path === PATH && (ctx.method === 'GET' || ctx.method === 'HEAD')) show(ctx);
    else await next();
  };
};
