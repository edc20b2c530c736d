import { problems, type Problem, type ProblemCode } from '../../problems';
import { html, marked, page, type Html } from './layout';

const statusOf = ({ status }: Problem): Html =>
  status === undefined ? html`at the command line` : html`status ${status}`;

/** The page that the `type` of an error links to. */
export const problemPage = (code: ProblemCode): string => {
  const problem: Problem = problems[code];
  return page(
    problem.title,
    html`<p class="soft">Code <code>${code}</code>, ${statusOf(problem)}</p>
      <p>${marked(problem.meaning)}</p>`,
  );
};

const rowOf = ([code, problem]: readonly [string, Problem]): Html =>
  html`<tr>
    <td>
      <a href="/problems/${code}"><code>${code}</code></a>
    </td>
    <td>${problem.status ?? ''}</td>
    <td>${problem.title}</td>
  </tr>`;

const list = (title: string, rows: readonly (readonly [string, Problem])[]): Html =>
  html`<h2>${title}</h2>
    <table>
      <thead>
        <tr>
          <th>Code</th>
          <th>Status</th>
          <th>Title</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(rowOf)}
      </tbody>
    </table>`;

export const problemsPage = (): string => {
  const all: readonly (readonly [string, Problem])[] = Object.entries(problems);
  const isHttpProblem = ([, { status }]: readonly [string, Problem]): boolean => status !== undefined;
  return page(
    'Problems',
    html`<p>
        Every error of the API is an <code>application/problem+json</code> body (RFC 9457) with one of these
        stable codes; its <code>type</code> leads to the page of the code.
      </p>
      ${list('Responses of the API', all.filter(isHttpProblem))}
      ${list(
        'At the command line',
        all.filter((entry) => !isHttpProblem(entry)),
      )}`,
  );
};
