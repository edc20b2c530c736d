import type { StreamKind } from '../domain/events';

/** The names of streams: the only place that knows their pattern. A name is matched whole, never by its beginning. */

export interface Streams {
  /** Decisions about a tenant, its Applications and their keys. */
  tenant(tenantId: string): string;
  /** Facts that other services report about a tenant. */
  activity(tenantId: string): string;
  /** The operator's own acts. */
  operator(): string;
  /** What the log says about itself. It is neither copied nor projected. */
  log(): string;
  /** Is it one of ours that holds history? */
  holds(stream: string): boolean;
  /** All names that `holds` accepts begin with one of these; others may as well. */
  beginnings(): readonly string[];
  /** Whose stream it is, or undefined when it is none of ours. */
  parse(stream: string): { readonly kind: StreamKind; readonly tenantId: string } | undefined;
}

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

export const streamNames = (prefix = ''): Streams => {
  const pattern = new RegExp(`^(tenant|activity)-(${UUID})$`);
  const parse: Streams['parse'] = (stream) => {
    const match = stream.startsWith(prefix) ? pattern.exec(stream.slice(prefix.length)) : null;
    return match === null ? undefined : { kind: match[1] as StreamKind, tenantId: match[2] as string };
  };
  const operator = `${prefix}operator`;
  return {
    tenant: (tenantId) => `${prefix}tenant-${tenantId}`,
    activity: (tenantId) => `${prefix}activity-${tenantId}`,
    operator: () => operator,
    log: () => `${prefix}log`,
    holds: (stream) => stream === operator || parse(stream) !== undefined,
    beginnings: () => [`${prefix}tenant-`, `${prefix}activity-`, operator],
    parse,
  };
};
