import { commandProblems } from './command-problems';
import type { RefusalCode } from './domain/refusal';
import { logProblems } from './log-problems';
import { readModelProblems } from './read-model-problems';

/**
 * Every error that a caller can meet, by its stable code: over HTTP (those with a status) and at the command line.
 * docs/errors.md, the pages at `/problems/<code>` and `tenant-ledger explain CODE` are made from this table.
 */
export interface Problem {
  /** Undefined: it never leaves through HTTP. */
  readonly status?: number;
  readonly title: string;
  /** What it means and what to do. */
  readonly meaning: string;
}

const problem = (status: number | undefined, title: string, meaning: string): Problem => ({
  ...(status === undefined ? {} : { status }),
  title,
  meaning,
});

const http = {
  validation_failed: problem(
    400,
    'One or more validation errors occurred.',
    'The body, a header or a query parameter is not as it should be. `errors` names each field with what is wrong. Correct it and send it again.',
  ),
  malformed_request: problem(
    400,
    'The request is not valid HTTP.',
    'The server could not read the request line or the headers. Check the client or the proxy in between.',
  ),
  key_refused: problem(
    401,
    'The API key is not accepted.',
    'The key is missing, malformed, unknown, expired or revoked, or its tenant is deleted. Send a good key in the API key header; the operator can make one with `tenant-ledger key create`.',
  ),
  permission_missing: problem(
    403,
    'The key lacks a permission.',
    "`required_permission` names what is needed and `assignable` says whether an Application of this type may ever hold it. The operator can assign it with `tenant-ledger application set-permissions`; if it is not assignable, use another Application's key.",
  ),
  not_found: problem(
    404,
    'There is nothing at this path.',
    'Check the path and its spelling; paths are case-sensitive.',
  ),
  method_not_allowed: problem(
    405,
    'This path does not have that method.',
    'The `Allow` header lists the methods that it has.',
  ),
  request_too_slow: problem(
    408,
    'The request took too long to arrive.',
    'The headers or the body were not complete in time. Send it again over a better connection.',
  ),
  idempotency_in_progress: problem(
    409,
    'A request with this idempotency key is in progress.',
    'Wait a moment and repeat it: then it gets the answer of the first one.',
  ),
  precondition_failed: problem(
    412,
    'The Tenant has changed.',
    '`If-Match` does not match the current `ETag`, which this answer carries. Read the Tenant again, look at what changed, and repeat with the new `ETag`.',
  ),
  body_too_large: problem(413, 'The body is too large.', 'Send a smaller body; the detail names the limit.'),
  unsupported_media_type: problem(
    415,
    'The body is not JSON.',
    'Send JSON in UTF-8, uncompressed or with a `Content-Encoding` of `gzip`, `deflate` or `br`, with `Content-Type: application/json`. Other JSON types, as `application/merge-patch+json`, mean something else and are refused.',
  ),
  idempotency_key_reused: problem(
    422,
    'The idempotency key was used with another body.',
    'A key stands for one request. Use a new key for a new request.',
  ),
  rate_limited: problem(
    429,
    'Too many requests came from this address.',
    '`violated_policies` names the limit that was passed. Its block ends after `Retry-After` seconds; requests meanwhile are refused and do not prolong it. `GET /limits` shows all limits.',
  ),
  headers_too_large: problem(
    431,
    'The headers are too large.',
    'Send fewer or shorter headers: 16 KiB in all.',
  ),
  internal_error: problem(
    500,
    'Something went wrong inside the service.',
    'This is a bug. Report it with the `trace_id`, which finds the cause in the service log.',
  ),
  log_unavailable: problem(
    503,
    'The event log is out of reach.',
    'Nothing was changed. Reads are refused only once the log has been away for a while, since keys may have been revoked meanwhile. Repeat the request after `Retry-After` seconds.',
  ),
  log_set_back: problem(
    503,
    'The event log was set back.',
    'The event log has lost events that this service had read or written, so nothing is read or written any more: it was restored from an older backup, or its file was replaced. Waiting does not help. The operator puts the right log back and restarts every service; if the older log is to stay, `tenant-ledger projections rebuild --all` comes before the restart.',
  ),
  outcome_unknown: problem(
    503,
    'It is not known whether the change was made.',
    'The event log did not answer in time, or its disk failed in the middle of the write: the change may have been made. Repeat the request with the same idempotency key, or read the Tenant and look.',
  ),
  read_models_unavailable: problem(
    503,
    'The read models cannot be read now.',
    'Repeat the request after `Retry-After` seconds. Writes are not affected.',
  ),
  starting: problem(
    503,
    'The service is starting.',
    'The read models are not yet up to date with the event log; `progress` says how far they are. Repeat the request after `Retry-After` seconds.',
  ),
  tenant_unreadable: problem(
    503,
    'The history of this tenant cannot be read.',
    'The event log holds something about this tenant that this program does not understand, or has lost events of it, so nothing can be decided. Waiting does not help. The operator finds the reason with `tenant-ledger status`; a newer program may be needed, or a backup of the log.',
  ),
} satisfies Record<string, Problem>;

const commandLine = {
  tenant_not_found: problem(
    undefined,
    'There is no such tenant.',
    'List them with `tenant-ledger tenant list`.',
  ),
  tenant_exists: problem(
    undefined,
    'A tenant with this id exists already.',
    'Choose another `--id`, or leave it out. The id of a deleted tenant is not used again.',
  ),
  tenant_deleted: problem(
    undefined,
    'The tenant is deleted.',
    'A deleted tenant cannot be changed. Its history stays.',
  ),
  application_not_found: problem(
    undefined,
    'The tenant has no such Application.',
    'List them with `tenant-ledger application list --tenant ID`.',
  ),
  application_exists: problem(
    undefined,
    'An Application with this id exists already.',
    'Choose another `--id`, or leave it out. The id of a deleted Application is not used again.',
  ),
  permission_unknown: problem(
    undefined,
    'There is no such permission.',
    'List them with `tenant-ledger permissions`.',
  ),
  permission_not_assignable: problem(
    undefined,
    'The application type may not hold this permission.',
    'List what it may hold with `tenant-ledger permissions --type TYPE`.',
  ),
  key_not_found: problem(
    undefined,
    'The tenant has no such key.',
    'List them with `tenant-ledger key list --tenant ID`.',
  ),
  key_exists: problem(undefined, 'This key exists already.', 'Make another one.'),
  key_already_revoked: problem(undefined, 'The key is revoked already.', 'There is nothing to do.'),
  name_invalid: problem(
    undefined,
    'The name is not acceptable.',
    'A name has 1 to 200 characters (UTF-16 units), is not blank and is well-formed Unicode.',
  ),
  expiry_invalid: problem(
    undefined,
    'The expiry is not in the future.',
    'Give a later time, for example `2031-01-31T12:00:00Z`.',
  ),
  not_parked: problem(
    undefined,
    'No tenant is parked at this event.',
    'Only an event that holds a tenant up can be set aside. List them with `tenant-ledger projections parked`.',
  ),
  projection_unknown: problem(
    undefined,
    'There is no such projection.',
    'List them with `tenant-ledger projections status`.',
  ),
  ...readModelProblems,
  event_too_large: problem(
    undefined,
    'The change is too large for one append.',
    'An append holds at most 1 MiB of data.',
  ),
  configuration_invalid: problem(
    undefined,
    'A setting makes no sense.',
    'The sentence names the variable and an example. `tenant-ledger config` shows all of them.',
  ),
  port_taken: problem(
    undefined,
    'A port is taken.',
    'Something else listens there, perhaps another server of ours. Stop it, or choose another `PORT` or `OPS_PORT`.',
  ),
  port_refused: problem(
    undefined,
    'This user may not listen on that port.',
    'Ports below 1024 are often for root only. Choose another `PORT` or `OPS_PORT`.',
  ),
  host_unknown: problem(
    undefined,
    'The address to listen on is not of this machine.',
    'Choose another `HOST` or `OPS_HOST`, for example `127.0.0.1` or `0.0.0.0`.',
  ),
  data_dir_unusable: problem(
    undefined,
    'The data folder cannot be used.',
    '`DATA_DIR` must be a folder, or a path where one can be made, on a disk that can be written and has room.',
  ),
  ...commandProblems,
  ...logProblems,
} satisfies Record<string, Problem>;

export type HttpProblemCode = keyof typeof http;
export type ProblemCode = HttpProblemCode | keyof typeof commandLine;

/** Every refusal of the domain has its row, or this does not compile. */
export const problems: Readonly<Record<ProblemCode | RefusalCode, Problem>> = { ...http, ...commandLine };

export const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(problems, code);
export const isHttpProblemCode = (code: string): code is HttpProblemCode => Object.hasOwn(http, code);
