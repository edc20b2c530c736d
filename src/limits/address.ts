import { IPv6 } from 'ipaddr.js';
import { isIPv4, isIPv6 } from 'node:net';

/** A normalized IP address. An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) becomes the IPv4 address. */
export interface Address {
  readonly family: 'ipv4' | 'ipv6';
  readonly text: string;
  /** What the limits count by: an IPv4 address, or the /64 of an IPv6 one, which a single customer typically has. */
  readonly counted: string;
}

const ipv4 = (text: string): Address => ({ family: 'ipv4', text, counted: text });

/** The library would take an IPv4-compatible address (`::192.0.2.1`, without `ffff`) for an IPv4-mapped one. */
const parseIPv6 = (text: string): IPv6 => IPv6.parse(text.replace(/^::(?=[0-9]+\.)/, '0::'));

/** A zone (`fe80::1%eth0`) names an interface of this machine and is ignored. */
export const parseAddress = (text: string): Address | undefined => {
  if (isIPv4(text)) return ipv4(text);
  const [bare = ''] = text.split('%');
  if (!isIPv6(bare)) return undefined;
  const address = parseIPv6(bare);
  if (address.isIPv4MappedAddress()) return ipv4(address.toIPv4Address().toString());
  const network = address.parts.slice(0, 4).map((group) => group.toString(16));
  return { family: 'ipv6', text: address.toNormalizedString(), counted: `${network.join(':')}::/64` };
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
