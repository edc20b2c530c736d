import { isIPv4, isIPv6 } from 'node:net';

/** A normalized IP address. An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) becomes the IPv4 address. */
export interface Address {
  readonly family: 'ipv4' | 'ipv6';
  readonly text: string;
  /** What the limits count by: an IPv4 address, or the /64 of an IPv6 one, which a single customer typically has. */
  readonly counted: string;
}

const GROUPS = 8;
const NETWORK_GROUPS = 4;

const parseGroups = (text: string): readonly string[] =>
  text.split(':').flatMap((group) => {
    if (!group.includes('.')) return group === '' ? [] : [Number.parseInt(group, 16).toString(16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)];
  });

/** The eight groups of a valid IPv6 address, in hexadecimal without leading zeros. */
const groupsOf = (text: string): readonly string[] => {
  const [head = '', tail] = text.split('::');
  if (tail === undefined) return parseGroups(head);
  const [before, after] = [parseGroups(head), parseGroups(tail)];
  const zeros = Array.from({ length: GROUPS - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after];
};

const isMapped = (groups: readonly string[]): boolean =>
  groups[5] === 'ffff' && groups.slice(0, 5).every((group) => group === '0');

const ipv4 = (text: string): Address => ({ family: 'ipv4', text, counted: text });

const ipv4In = (groups: readonly string[]): Address => {
  const bytes = groups.slice(6).flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 255];
  });
  return ipv4(bytes.join('.'));
};

/** A zone (`fe80::1%eth0`) names an interface of this machine and is ignored. */
export const parseAddress = (text: string): Address | undefined => {
  if (isIPv4(text)) return ipv4(text);
  const [bare = ''] = text.split('%');
  if (!isIPv6(bare)) return undefined;
  const groups = groupsOf(bare);
  if (isMapped(groups)) return ipv4In(groups);
  return {
    family: 'ipv6',
    text: groups.join(':'),
    counted: `${groups.slice(0, NETWORK_GROUPS).join(':')}::/64`,
  };
};

const IN_BRACKETS = /^\[([^\]]+)\](?::[0-9]{1,5})?$/;
const WITH_PORT = /^([0-9.]+):[0-9]{1,5}$/;

/** An element of `X-Forwarded-For`: proxies may add a port, or write an IPv6 address in brackets. */
export const parseForwarded = (element: string): Address | undefined => {
  const text = element.trim();
  const bracketed = IN_BRACKETS.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed.includes(':') ? parseAddress(bracketed) : undefined;
  return parseAddress(WITH_PORT.exec(text)?.[1] ?? text);
};
