import type { StreamKind } from '../domain/events';

/** The names of streams: the only place that knows their pattern. A name is matched whole, never by its beginning. */

export interface Streams {
  /** All our stream names begin with it. */
  readonly prefix: string;
  /** Decisions about a tenant, its Applications and their keys. */
  tenant(tenantId: string): string;
  /** Facts that other services report about a tenant. */
  activity(tenantId: string): string;
  /** The operator's own acts. */
  operator(): string;
  /** The log's record of its own identity. It is neither copied nor projected. */
  log(): string;
  /** Is it one of ours, with events to copy and project? */
  holds(stream: string): boolean;
  /** All names that `holds` accepts begin with one of these; others may as well. */
  beginnings(): readonly string[];
  /** Whose stream it is, or undefined when it is none of ours. */
  parse(stream: string): { readonly kind: StreamKind; readonly tenantId: string } | undefined;
  /** Its name without the prefix, the same in every log, or undefined when it is none of ours. */
  roleOf(stream: string): string | undefined;
  /** The stream of that role. */
  withRole(role: string): string;
}

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

const OF_A_TENANT = new RegExp(`^(.*)(?:tenant|activity)-${UUID}$`, 's');

/** The prefix of a tenant's stream, or undefined when no prefix makes it one. */
export const prefixOf = (stream: string): string | undefined => OF_A_TENANT.exec(stream)?.[1];

type Owner = ReturnType<Streams['parse']>;

/** The same names occur again and again: recent ones are cached. */
const MOST_KNOWN = 10_000;

export const streamNames = (prefix = ''): Streams => {
  const pattern = new RegExp(`^(tenant|activity)-(${UUID})$`);
  const known = new Map<string, Owner>();
  let last: { readonly stream: string; readonly owner: Owner } | undefined;

  const withoutPrefix = (stream: string): string =>
    stream.startsWith(prefix) ? stream.slice(prefix.length) : '';

  const roleOf = (stream: string): string | undefined => {
    const role = withoutPrefix(stream);
    return role === 'operator' || pattern.test(role) ? role : undefined;
  };

  const ownerOf = (stream: string): Owner => {
    const match = pattern.exec(withoutPrefix(stream));
    return match === null ? undefined : { kind: match[1] as StreamKind, tenantId: match[2] as string };
  };

  const remembered = (stream: string): Owner => {
    if (known.has(stream)) return known.get(stream);
    if (known.size >= MOST_KNOWN) known.clear();
    const owner = ownerOf(stream);
    known.set(stream, owner);
    return owner;
  };

  /** Neighbours in a log often share their stream. */
  const parse = (stream: string): Owner => {
    if (last?.stream !== stream) last = { stream, owner: remembered(stream) };
    return last.owner;
  };

  return {
    prefix,
    tenant: (tenantId) => `${prefix}tenant-${tenantId}`,
    activity: (tenantId) => `${prefix}activity-${tenantId}`,
    operator: () => `${prefix}operator`,
    log: () => `${prefix}log`,
    holds: (stream) => roleOf(stream) !== undefined,
    beginnings: () => [`${prefix}tenant-`, `${prefix}activity-`, `${prefix}operator`],
    parse,
    roleOf,
    withRole: (role) => `${prefix}${role}`,
  };
};
