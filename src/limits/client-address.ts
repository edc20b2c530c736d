import { isIPv4, isIPv6 } from 'node:net';

/** One that stands for an IPv4 address, as `URL` writes it. */
const MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;

const inIPv4 = (...halves: readonly string[]): string =>
  halves
    .map((half) => parseInt(half, 16))
    .flatMap((group) => [group >> 8, group & 255])
    .join('.');

/** Requests of an IPv6 address are counted by its /64, which a single customer typically has. */
const networkOf = (short: string): string => {
  const groups = short.split(':').filter(Boolean);
  const all = short.replace('::', `:${'0:'.repeat(8 - groups.length)}`).split(':');
  return `${all.filter(Boolean).slice(0, 4).join(':')}::/64`;
};

/**
 * The address as it is counted and recorded, however it is spelt. An IPv4-mapped one is the IPv4 address; a zone names an
 * interface of this machine. Undefined: it is no IP address.
 */
export const countedAddress = (address: string): string | undefined => {
  const bare = address.replace(/%.*$/, '');
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return undefined;
  const short = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  const [mapped, ...halves] = MAPPED.exec(short) ?? [];
  return mapped === undefined ? networkOf(short) : inIPv4(...halves);
};
