import { isProblemCode, problems, type ProblemCode } from '../../problems';
import type { ApiContext } from '../api-context';
import { openApiDocument, type Described } from '../openapi/document';

/** What needs no key: the description of the API, and the pages at the `type` of errors. */
const DESCRIPTION = '/openapi.json';
const PROBLEM = /^\/problems\/([a-z_]+)$/;

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (code: string, status: number | undefined, title: string, meaning: string): string =>
  `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escaped(code)}</title>
<h1>${escaped(title)}</h1>
<p>Code <code>${escaped(code)}</code>${status === undefined ? '' : `, status ${status}`}.</p>
<p>${escaped(meaning)}</p>
</html>
`;

const show = (ctx: ApiContext, route: string, type: string, body: string): true => {
  ctx.state.route = route;
  ctx.status = 200;
  ctx.set('Cache-Control', 'public, max-age=3600');
  ctx.body = body;
  ctx.type = `${type}; charset=utf-8`;
  return true;
};

/** HTML for people, JSON for programs. */
const showProblem = (ctx: ApiContext, code: ProblemCode): true => {
  const { status, title, meaning } = problems[code];
  ctx.vary('Accept');
  const route = '/problems/:code';
  if (ctx.accepts('json', 'html') === 'html')
    return show(ctx, route, 'text/html', page(code, status, title, meaning));
  return show(ctx, route, 'application/json', JSON.stringify({ code, status, title, meaning }));
};

/** Answers a request for one of them. False: it asks for something else. */
export const openPages = (described: Described): ((ctx: ApiContext) => boolean) => {
  // Made when somebody first asks for it.
  let made: string | undefined;
  return (ctx) => {
    const { path } = ctx.state;
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return false;
    if (path === DESCRIPTION) {
      made ??= JSON.stringify(openApiDocument(described));
      return show(ctx, DESCRIPTION, 'application/json', made);
    }
    const code = PROBLEM.exec(path)?.[1];
    return code !== undefined && isProblemCode(code) && showProblem(ctx, code);
  };
};
