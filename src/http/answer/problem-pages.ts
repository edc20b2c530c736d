import { isProblemCode, problems, type ProblemCode } from '../../problems';
import type { ApiContext, Step } from '../api-context';

const PATH = /^\/problems\/([a-z_]+)$/;

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (
  code: string,
  status: number | undefined,
  title: string,
  meaning: string,
): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escaped(code)}</title>
<h1>${escaped(title)}</h1>
<p>Code <code>${escaped(code)}</code>${status === undefined ? '' : `, status ${status}`}.</p>
<p>${escaped(meaning)}</p>
</html>
`;

const show = (ctx: ApiContext, code: ProblemCode): void => {
  const { status, title, meaning } = problems[code];
  ctx.state.route = '/problems/:code';
  ctx.status = 200;
  ctx.set('Cache-Control', 'public, max-age=3600');
  ctx.vary('Accept');
  if (ctx.accepts('json', 'html') === 'html') {
    ctx.body = page(code, status, title, meaning);
    ctx.type = 'text/html; charset=utf-8';
    return;
  }
  ctx.body = JSON.stringify({ code, ...(status === undefined ? {} : { status }), title, meaning });
  ctx.type = 'application/json; charset=utf-8';
};

/** The page at an error's `type`: the one thing that needs no key. HTML for people, JSON for programs. */
export const problemPages: Step = async (ctx, next) => {
  const code = PATH.exec(ctx.state.path)?.[1];
  if (code === undefined || !isProblemCode(code) || (ctx.method !== 'GET' && ctx.method !== 'HEAD'))
    await next();
  else show(ctx, code);
};
