/** Why a known key was refused. An unknown key belongs to no tenant, so no tenant's log records it. */
export const accessFaults = ['permission_missing', 'expired', 'revoked', 'application_deleted'] as const;
export type AccessFault = (typeof accessFaults)[number];

/** An event lists and counts addresses up to these numbers. */
export const NAMED_ADDRESSES = 5;
export const COUNTED_ADDRESSES = 100;

/** In the place of the addresses if clients are not recorded: an event has at least one. */
export const ADDRESS_NOT_RECORDED = 'not recorded';

/** All refusals of one key within about a minute, in the stream `activity-<tenantId>`. No decision depends on it. */
export interface AccessEvent {
  readonly type: 'AccessRefused';
  readonly data: {
    readonly applicationId: string;
    readonly keyId: string;
    readonly faults: readonly AccessFault[];
    /** The missing ones. */
    readonly permissions?: readonly string[];
    readonly count: number;
    readonly addressCount: number;
    readonly addresses: readonly string[];
    readonly firstAt: string;
    readonly lastAt: string;
  };
}

const texts: Readonly<Record<AccessFault, (data: AccessEvent['data']) => string>> = {
  permission_missing: ({ permissions = [] }) => `lacks ${permissions.join(', ')}`,
  expired: () => 'expired key',
  revoked: () => 'revoked key',
  application_deleted: () => 'deleted Application',
};

const counted = (count: number, one: string, many: string): string =>
  count === 1 ? `1 ${one}` : `${count} ${many}`;

/** `Access refused 12 times from 3 addresses: lacks tenant:update`. */
export const refusedMessage = (data: AccessEvent['data']): string => {
  const { count, addressCount, faults } = data;
  const least = addressCount >= COUNTED_ADDRESSES ? 'at least ' : '';
  const from = `${least}${counted(addressCount, 'address', 'addresses')}`;
  const why = faults.map((fault) => texts[fault](data)).join('; ');
  return `Access refused ${counted(count, 'time', 'times')} from ${from}: ${why}`;
};
