import type { StreamKind } from '../domain/events';
import { UUID_PATTERN } from '../uuid';

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

const OF_A_TENANT = new RegExp(`^(.*)(?:tenant|activity)-${UUID_PATTERN}$`, 's');

/** The prefix of a tenant's stream, or undefined when no prefix makes it one. */
export const prefixOf = (stream: string): string | undefined => OF_A_TENANT.exec(stream)?.[1];

export const streamNames = (prefix = ''): Streams => {
  const pattern = new RegExp(`^(tenant|activity)-(${UUID_PATTERN})$`);

  const withoutPrefix = (stream: string): string =>
    stream.startsWith(prefix) ? stream.slice(prefix.length) : '';

  const roleOf = (stream: string): string | undefined => {
    const role = withoutPrefix(stream);
    return role === 'operator' || pattern.test(role) ? role : undefined;
  };

  return {
    prefix,
    tenant: (tenantId) => `${prefix}tenant-${tenantId}`,
    activity: (tenantId) => `${prefix}activity-${tenantId}`,
    operator: () => `${prefix}operator`,
    log: () => `${prefix}log`,
    holds: (stream) => roleOf(stream) !== undefined,
    beginnings: () => [`${prefix}tenant-`, `${prefix}activity-`, `${prefix}operator`],
    parse: (stream) => {
      const match = pattern.exec(withoutPrefix(stream));
      return match === null ? undefined : { kind: match[1] as StreamKind, tenantId: match[2] as string };
    },
    roleOf,
    withRole: (role) => `${prefix}${role}`,
  };
};
