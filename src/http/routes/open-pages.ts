import { isProblemCode, problems, type Problem, type ProblemCode } from '../../problems';
import type { ApiContext } from '../api-context';
import { openApiDocument, type Described } from '../openapi/document';
import { homePage } from '../pages/home-page';
import { PAGE_SECURITY } from '../pages/layout';
import { problemPage, problemsPage } from '../pages/problem-pages';
import { referencePage } from '../pages/reference-page';

/** What needs no key: what this service is, its description, and the pages at the `type` of errors. */
interface OpenPage {
  readonly route: string;
  /** For programs. */
  readonly json: () => string;
  /** For people; left out: everybody gets the JSON. */
  readonly html?: () => string;
  /** Everybody gets the HTML. */
  readonly isForPeople?: true;
}

const PROBLEM = /^\/problems\/([a-z_]+)$/;

const json = (value: unknown) => (): string => JSON.stringify(value);

/** Made when somebody first asks for it. */
const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined;
  return () => (made ??= make());
};

const problemOf = (code: ProblemCode): OpenPage => {
  const { status, title, meaning }: Problem = problems[code];
  return {
    route: '/problems/:code',
    json: json({ code, status, title, meaning }),
    html: () => problemPage(code),
  };
};

const problemRows = (): unknown =>
  Object.entries(problems).map(([code, { status, title }]: readonly [string, Problem]) => ({
    code,
    status,
    title,
  }));

const pagesOf = (described: Described): ReadonlyMap<string, OpenPage> => {
  const { version, headers } = described;
  const document = once(() => openApiDocument(described));
  const links = { docs: '/docs', openapi: '/openapi.json', problems: '/problems' };
  const pages: readonly OpenPage[] = [
    {
      route: '/',
      json: json({ name: 'tenant-ledger', version, ...links }),
      html: () => homePage(version, headers),
    },
    { route: '/openapi.json', json: once(() => JSON.stringify(document())) },
    { route: '/docs', json: () => '', html: once(() => referencePage(document())), isForPeople: true },
    { route: '/problems', json: json({ data: problemRows() }), html: once(problemsPage) },
  ];
  return new Map(pages.map((page) => [page.route, page]));
};

/** HTML for people, JSON for programs. */
const wantsHtml = (ctx: ApiContext, { html, isForPeople }: OpenPage): boolean => {
  if (html === undefined) return false;
  if (isForPeople === true) return true;
  ctx.vary('Accept');
  return ctx.accepts('json', 'html') === 'html';
};

const show = (ctx: ApiContext, page: OpenPage): void => {
  const isHtml = wantsHtml(ctx, page);
  ctx.state.route = page.route;
  ctx.status = 200;
  ctx.set('Cache-Control', 'public, max-age=3600');
  if (isHtml) ctx.set('Content-Security-Policy', PAGE_SECURITY);
  ctx.body = (isHtml ? page.html : page.json)?.();
  ctx.type = `${isHtml ? 'text/html' : 'application/json'}; charset=utf-8`;
};

/** Answers a request for one of them. False: it asks for something else. */
export const openPages = (described: Described): ((ctx: ApiContext) => boolean) => {
  const pages = pagesOf(described);

  const find = (path: string): OpenPage | undefined => {
    const code = PROBLEM.exec(path)?.[1];
    return code !== undefined && isProblemCode(code) ? problemOf(code) : pages.get(path);
  };

  return (ctx) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return false;
    const page = find(ctx.state.path);
    if (page === undefined) return false;
    show(ctx, page);
    return true;
  };
};
