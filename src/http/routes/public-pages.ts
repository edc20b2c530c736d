import { isProblemCode, problems, type Problem, type ProblemCode } from '../../problems';
import { headerOf, type ApiContext, type Step } from '../context';
import type { ApiSettings } from '../dependencies';
import { homePage } from '../pages/home-page';
import { BASE_URL, PAGE_SECURITY, REFERENCE_SECURITY } from '../pages/layout';
import { problemPage, problemsPage } from '../pages/problem-pages';
import { referencePage } from '../pages/reference-page';
import type { Route } from './route';
import { listOf, described, record, text, type Schema } from './schema';

/** The variable content of the pages. */
interface Content extends Pick<ApiSettings, 'version' | 'headers' | 'publicUrl'> {
  /** The OpenAPI document. */
  readonly document: () => Schema;
}

/** A page that needs no key: about the service, its API, or the problems that the `type` of errors links to. */
export interface PublicPage extends Pick<Route, 'path' | 'params' | 'operationId' | 'summary'> {
  readonly description: string;
  /** For programs. Omitted: the page is always HTML. */
  readonly json?: {
    readonly schema: Schema;
    readonly example: unknown;
    readonly body: (content: Content, code: ProblemCode) => unknown;
  };
  /** For people. Omitted: the page is always JSON. */
  readonly html?: (content: Content, code: ProblemCode) => string;
  /** The `Content-Security-Policy` of the HTML, if it has a script. */
  readonly security?: string;
}

const LINKS = { docs: '/docs', openapi: '/openapi.json', problems: '/problems' };
const SERVICE = { name: 'tenant-ledger', version: '0.1.0', ...LINKS };

const PROBLEM_PREFIX = '/problems/';

const summaryProperties = {
  code: described(text, 'The stable name of the problem.', 'not_found'),
  status: described(
    { type: 'integer', format: 'int64' },
    'Its HTTP status; absent for problems of the command line.',
    404,
  ),
  title: described(text, 'The kind of error, always in the same words.'),
};

const summaryOf = (code: string, { status, title }: Problem) => ({ code, status, title });

export const publicPages: readonly PublicPage[] = [
  {
    path: '/',
    operationId: 'getService',
    summary: 'Describe this service',
    description: 'What this service is, and where it is described: for people, or for programs.',
    json: {
      schema: record('Service', {
        name: described(text, 'The name of the program.', SERVICE.name),
        version: described(text, 'Its version.', SERVICE.version),
        docs: described(text, 'The path of the API reference.', SERVICE.docs),
        openapi: described(text, 'The path of this document.', SERVICE.openapi),
        problems: described(text, 'The path of the list of problems.', SERVICE.problems),
      }),
      example: SERVICE,
      body: ({ version }) => ({ ...SERVICE, version }),
    },
    html: ({ version, headers }) => homePage(version, headers),
  },
  {
    path: LINKS.docs,
    operationId: 'getApiReference',
    summary: 'Show the API reference',
    description: 'Every endpoint with its parameters, members, headers, problems and samples.',
    html: ({ document }) => referencePage(document()),
    security: REFERENCE_SECURITY,
  },
  {
    path: LINKS.problems,
    operationId: 'listProblems',
    summary: 'List the problems',
    description: 'Every code: for people, or for programs.',
    json: {
      schema: record('ProblemList', {
        data: described(listOf(record('ProblemSummary', summaryProperties, ['status'])), 'All problems.'),
      }),
      example: { data: [summaryOf('not_found', problems.not_found)] },
      body: () => ({ data: Object.entries(problems).map(([code, problem]) => summaryOf(code, problem)) }),
    },
    html: problemsPage,
  },
  {
    path: LINKS.openapi,
    operationId: 'getOpenApiDocument',
    summary: 'Get this document',
    description: 'This document.',
    json: { schema: { type: 'object' }, example: { openapi: '3.1.0' }, body: ({ document }) => document() },
  },
  {
    path: `${PROBLEM_PREFIX}:code`,
    params: {
      code: {
        description: 'The code of a problem.',
        schema: { type: 'string', enum: Object.keys(problems) },
        example: 'not_found',
      },
    },
    operationId: 'getProblem',
    summary: 'Explain a problem',
    description: 'What it means and what to do: for people, or for programs.',
    json: {
      schema: record(
        'ProblemPage',
        { ...summaryProperties, meaning: described(text, 'What it means and what to do.') },
        ['status'],
      ),
      example: { code: 'not_found', ...problems.not_found },
      body: (_, code) => ({ ...summaryOf(code, problems[code]), meaning: problems[code].meaning }),
    },
    html: (_, code) => problemPage(code),
  },
];

/** HTML for people, JSON for programs. */
const wantsHtml = (ctx: ApiContext, { json, html }: PublicPage): boolean => {
  if (json === undefined || html === undefined) return html !== undefined;
  ctx.vary('Accept');
  return ctx.accepts('json', 'html') === 'html';
};

const isLiteral = ({ params }: PublicPage): boolean => params === undefined;
const literalPages = new Map(publicPages.filter(isLiteral).map((page) => [page.path, page]));
const pageOfProblem = publicPages.find((page) => !isLiteral(page));

export const publicPageAt = (path: string): PublicPage | undefined =>
  path.startsWith(PROBLEM_PREFIX) && isProblemCode(path.slice(PROBLEM_PREFIX.length))
    ? pageOfProblem
    : literalPages.get(path);

const isGetOrHead = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** A name or an address, and possibly a port: nothing that would mean more in a shell. */
const HOST = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/i;

/**
 * The address of this service as the client knows it: as configured, or else the one that the request was sent to. Only
 * a trusted proxy is believed that it was sent over TLS. Not for anything but to be shown to that client.
 */
const baseUrlOf = (ctx: ApiContext, { publicUrl }: Pick<ApiSettings, 'publicUrl'>): string => {
  if (publicUrl !== '') return publicUrl;
  const host = headerOf(ctx, 'host') ?? '';
  const own = `127.0.0.1:${ctx.req.socket.localPort}`;
  return `${ctx.secure ? 'https' : 'http'}://${HOST.test(host) ? host : own}`;
};

/** Does without the router: there are few pages, and every request would have to be routed twice. */
export const servePublicPages = (content: Content): Step => {
  /** Each page is rendered on its first request. */
  const rendered = new Map<string, string | undefined>();

  const show = (ctx: ApiContext, page: PublicPage, code: ProblemCode): void => {
    const isHtml = wantsHtml(ctx, page);
    const variant = `${ctx.state.path} ${isHtml}`;
    const render = () =>
      isHtml ? page.html?.(content, code) : JSON.stringify(page.json?.body(content, code));
    const body = rendered.get(variant) ?? render();
    rendered.set(variant, body);
    const hasAddress = body?.includes(BASE_URL) === true;
    // A cache that others share must not give out an address that this client made up.
    const scope = hasAddress && content.publicUrl === '' ? 'private' : 'public';
    ctx.state.route = page.path;
    ctx.status = 200;
    ctx.set('Cache-Control', `${scope}, max-age=3600`);
    if (isHtml) ctx.set('Content-Security-Policy', page.security ?? PAGE_SECURITY);
    ctx.body = hasAddress ? body.replaceAll(BASE_URL, () => baseUrlOf(ctx, content)) : body;
    ctx.type = `${isHtml ? 'text/html' : 'application/json'}; charset=utf-8`;
  };

  return async (ctx, next) => {
    const { path } = ctx.state;
    const page = isGetOrHead(ctx.method) ? publicPageAt(path) : undefined;
    if (page === undefined) return next();
    show(ctx, page, path.slice(PROBLEM_PREFIX.length) as ProblemCode);
  };
};
