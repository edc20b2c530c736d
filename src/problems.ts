import type { RefusalCode } from './domain/refusal';

/**
 * Every error that a caller may see, by its stable code: over HTTP (those with a status) and on the command line.
 * docs/errors.md, the pages at `/problems/<code>` and `tenant-ledger explain CODE` are generated from this table.
 */
export interface Problem {
  /** Undefined: never sent over HTTP. */
  readonly status?: number;
  readonly title: string;
  /** What it means and what to do. */
  readonly meaning: string;
  /** The members of its body that not every problem has. */
  readonly members?: readonly string[];
}

const ofHttp = (status: number, title: string, meaning: string, ...members: readonly string[]) => {
  return { status, title, meaning, members };
};
const ofCommand = (title: string, meaning: string) => ({ title, meaning });

export const httpProblems = {
  validation_failed: ofHttp(
    400,
    'One or more validation errors occurred.',
    'A value is not valid: in a body, a header or a query, or in an option. `errors` says what is wrong with each field. Correct it and try again.',
    'errors',
  ),
  key_refused: ofHttp(
    401,
    'The API key is not accepted.',
    'The key is missing, malformed, unknown, expired or revoked, or its tenant is deleted. Send a valid key in the API key header; the operator can create one with `tenant-ledger key create`.',
  ),
  permission_missing: ofHttp(
    403,
    'The key lacks a permission.',
    "`required_permission` names what is needed, and `assignable` says whether an Application of this type may ever hold it. The operator assigns it with `tenant-ledger application set-permissions`; otherwise use another Application's key.",
    'required_permission',
    'application_type',
    'assignable',
  ),
  portal_refused: ofHttp(
    403,
    'The portal refuses this request.',
    'Its session is for its own pages, over TLS or on one machine. Programs use the API.',
  ),
  permission_not_held: ofHttp(
    403,
    'The key would grant a permission that it does not hold.',
    '`missing_permissions` names what the key lacks. An Application can grant what it holds, and get keys of Applications that hold no more; one that holds everything its type may hold can grant anything. Or ask the operator.',
    'missing_permissions',
  ),
  service_only: ofHttp(
    403,
    'Only a service that may do this can.',
    'This is for programs of the operator, with keys of their own (`svc_…`), made with `tenant-ledger service create --name NAME --may facts,verify`. The detail says what this one must be allowed to.',
  ),
  tenant_only: ofHttp(
    403,
    'This needs the key of an Application.',
    'The key is that of a service, which reports facts (`POST /facts`) and has keys verified (`/keys/verify`). Everything else is about one tenant: use a key of one of its Applications (`key_…`).',
  ),
  not_found: ofHttp(
    404,
    'There is nothing at this path.',
    'Check the path and its spelling; paths are case-sensitive.',
  ),
  event_not_found: ofHttp(
    404,
    'There is no such event.',
    'No event has this id, or the event belongs to another Tenant. `GET /events` and `tenant-ledger audit` show events with their ids.',
  ),
  application_not_found: ofHttp(
    404,
    'The tenant has no such Application.',
    'It never existed, is deleted, or belongs to another tenant. `GET /applications` and `tenant-ledger application list --tenant ID` list the Applications there are.',
  ),
  key_not_found: ofHttp(
    404,
    'There is no such key.',
    'The Application has no key with this id, or the key is revoked or expired. `GET /applications/{application_id}/keys` and `tenant-ledger key list --tenant ID` list the keys there are.',
  ),
  method_not_allowed: ofHttp(
    405,
    'This method is not supported for this path.',
    'The `Allow` header lists the methods that are.',
  ),
  idempotency_in_progress: ofHttp(
    409,
    'A request with this idempotency key is in progress.',
    'Wait a moment and repeat the request: it then gets the response of the first one.',
  ),
  application_type_fixed: ofHttp(
    409,
    'The type of an Application cannot be changed.',
    'Leave out `type`, or create another Application of the type you need.',
  ),
  quota_exceeded: ofHttp(
    409,
    'There are as many as there may be.',
    'A tenant can have only so many Applications and keys, and an Application only so many keys; the detail names the number. Delete or revoke what is no longer needed.',
  ),
  precondition_failed: ofHttp(
    412,
    'The Tenant or the Application has changed.',
    '`If-Match` does not match the current `ETag`, or `If-None-Match` does. This response carries it. Read the resource again, look at what changed, and repeat the request with the new `ETag`.',
  ),
  body_too_large: ofHttp(413, 'The body is too large.', 'Send a smaller body; the detail names the limit.'),
  unsupported_media_type: ofHttp(
    415,
    'The body is not JSON.',
    'Send JSON in UTF-8, uncompressed or with a `Content-Encoding` of `gzip`, `deflate` or `br`, with `Content-Type: application/json`. Other JSON types, such as `application/merge-patch+json`, mean something else and are refused.',
  ),
  idempotency_key_reused: ofHttp(
    422,
    'The idempotency key was used with another body.',
    'An idempotency key identifies one request. Use a new key for a new request.',
  ),
  rate_limited: ofHttp(
    429,
    'Too many requests came from this address.',
    '`violated_policies` names the limit that was exceeded. The block ends after `Retry-After` seconds; requests refused until then do not prolong it. `GET /limits` shows all limits.',
    'violated_policies',
  ),
  too_many_streams: ofHttp(
    429,
    'Too many event streams are open.',
    'Close one, or try again after `Retry-After` seconds. The detail says whose streams they are.',
  ),
  internal_error: ofHttp(
    500,
    'Something went wrong inside the service.',
    'This is a bug. Report it with the `trace_id`, which finds the cause in the service log.',
  ),
  log_unavailable: ofHttp(
    503,
    'The event log is out of reach.',
    'Nothing was changed. The log did not answer, its disk is full, or the long history of the Tenant is still being read. Repeat after `Retry-After` seconds; without that header the log is damaged, and only the operator can help.',
  ),
  log_set_back: ofHttp(
    503,
    'The event log was rolled back.',
    'Events that the service knew are missing: an older backup was restored, or a new leader is behind. After 5 seconds the service ends with exit code 3. Put the right log back, or run `tenant-ledger projections rebuild`.',
  ),
  outcome_unknown: ofHttp(
    503,
    'It is not known whether the change was made.',
    'The log did not answer in time, or its disk failed during the write: the change may have been made. Repeat the request with the same idempotency key, or look. Send facts again as they are: an id counts once.',
  ),
  read_models_unavailable: ofHttp(
    503,
    'The read models are out of reach.',
    'They cannot be read or, after a start, have not caught up with the event log yet; then `progress` says how far they are. Repeat the request after `Retry-After` seconds. Writes are not affected.',
    'progress',
  ),
  service_busy: ofHttp(
    503,
    'The service has too many requests under way.',
    'Nothing was changed. An instance takes four requests with facts of a service at a time. Send fewer at once, with more facts in each, and repeat this one after `Retry-After` seconds.',
  ),
  services_unreadable: ofHttp(
    503,
    'The services of the operator cannot be read.',
    "The stream `operator` has an event about services that this program cannot read, or lacks events, so one may be revoked. Waiting does not help: the operator finds the reason in the service's log. Keys of Applications are not affected.",
  ),
  tenant_unreadable: ofHttp(
    503,
    'The history of this tenant cannot be read.',
    'The log holds an event of this tenant that this program cannot read, or lacks some, so nothing can be decided. Waiting does not help: the operator finds the reason with `tenant-ledger status`, and needs a newer program or backup.',
  ),
} satisfies Record<string, Problem & { status: number }>;

const commandProblems = {
  tenant_not_found: ofCommand(
    'There is no such tenant.',
    'See `tenant-ledger tenant list`. The exit code is 4.',
  ),
  service_not_found: ofCommand(
    'There is no such service.',
    'It never existed, or is revoked. See `tenant-ledger service list`.',
  ),
  already_exists: ofCommand(
    'There is one with this id already.',
    'Choose another `--id`, or leave it out. The id of something deleted cannot be used again.',
  ),
  tenant_deleted: ofCommand(
    'The tenant is deleted.',
    'A deleted tenant cannot be changed. Its history stays.',
  ),
  not_parked: ofCommand(
    'No tenant is parked at this event.',
    'Only an event that parks a tenant can be set aside. `tenant-ledger status` lists these events.',
  ),
  rebuild_running: ofCommand(
    'Another rebuild was faster.',
    'Another process switched to other read models during the rebuild. These are in use now; there is nothing left to do.',
  ),
  rebuild_differs: ofCommand(
    'The rebuilt read models differ from the live ones.',
    'Documents differ, or a tenant is parked that the live ones do not park. The live read models stay. The command shows the first differences, `tenant-ledger projections verify` all; `--accept-differences` switches all the same. The exit code is 4.',
  ),
  read_models_of_another_log: ofCommand(
    'The read models belong to another event log.',
    '`EVENTSTORE_URL`, `MONGODB_URL`, `STREAM_PREFIX` or `DATA_DIR` is not what it was when they were built: correct it. Only if this is the right log, run `tenant-ledger projections rebuild`, and start again.',
  ),
  log_of_another_prefix: ofCommand(
    'The event log has another stream prefix.',
    'A log in a data folder belongs to the `STREAM_PREFIX` that it was created with. The message names both prefixes: correct `STREAM_PREFIX` or `DATA_DIR` (for `log` commands, the option that sets the prefix). Nothing was changed.',
  ),
  log_incomplete: ofCommand(
    'The event log is not complete.',
    '`events.db` is missing or empty, or a restore or a `log copy` is unfinished. Run the interrupted command again, or restore `events.db` from a backup. To begin with an empty log, move the remains and `read-models` away. Nothing was changed.',
  ),
  log_of_newer_program: ofCommand(
    'The event log has a format that this program does not know.',
    'Start the program that created it, or a newer one.',
  ),
  log_not_found: ofCommand(
    'There is no event log at this place.',
    'Commands create no log, so that a wrong path is noticed. Set `DATA_DIR`, or `EVENTSTORE_URL` and `STREAM_PREFIX`, as the service has them. `log` commands take the path of a data folder, `sqlite:PATH`, `esdb://HOST:PORT` or `configured`.',
  ),
  copy_refused: ofCommand(
    'There is no complete copy of this log.',
    'The message says why. If the source is being written to, or the target cannot store an event unchanged, run the command again. If the target is no new log, or has other events, take a new one.',
  ),
  history_missing: ofCommand(
    'Events of a stream were removed from the event store.',
    "Someone deleted or truncated the stream that the message names. Waiting does not help: the events are only in backups of the event store. For a tenant's own stream the service answers `tenant_unreadable`.",
  ),
  configuration_invalid: ofCommand(
    'A setting is not valid.',
    'The message names the variable and an example. `tenant-ledger config` shows all of them.',
  ),
  data_dir_unusable: ofCommand(
    'The data folder cannot be used.',
    '`DATA_DIR` must be a folder, or a path where one can be created, on a writable disk with free space.',
  ),
  port_unusable: ofCommand(
    'A port cannot be used.',
    'Another program listens there, or this user may not. The message names the setting, `PORT` or `OPS_PORT`: choose another port, or stop the other program.',
  ),
  not_confirmed: ofCommand(
    'This must be confirmed.',
    'It cannot be undone. Confirm it on a terminal, or pass `--yes`.',
  ),
  file_unreadable: ofCommand('A file cannot be read.', 'Check its name and permissions.'),
  evidence_contradicted: ofCommand(
    'The evidence does not fit.',
    'The message says which file contradicts which: a checkpoint, a proof or an export was altered, was signed by another key, or the history was. Keep all files and compare with what others have kept. The exit code is 4.',
  ),
  backup_unusable: ofCommand(
    'The backup cannot be used.',
    'The message says what is wrong with it. A modified or damaged backup is never restored, and one that the log does not continue is never replaced: use another one, or name another folder.',
  ),
  restore_refused: ofCommand(
    'The backup cannot be restored into this folder.',
    'A backup is only restored into an empty `DATA_DIR`, so that nothing is ever overwritten.',
  ),
  wrong_usage: ofCommand(
    'The command line is not valid.',
    'Add `--help` to the command to see its arguments and options. The exit code is 2.',
  ),
  output_failed: ofCommand(
    'The output could not be written.',
    'stdout, or the file of `--output`, could not be written: the disk is full or the pipe is closed. Changes already made are kept.',
  ),
} satisfies Record<string, Problem>;

const all = { ...httpProblems, ...commandProblems };

export type HttpProblemCode = keyof typeof httpProblems;
export type ProblemCode = keyof typeof all;

/** Does not compile unless every refusal of the domain has an entry. */
export const problems: Readonly<Record<ProblemCode | RefusalCode, Problem>> = all;

export const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(problems, code);
export const isHttpProblemCode = (code: string): code is HttpProblemCode => Object.hasOwn(httpProblems, code);
