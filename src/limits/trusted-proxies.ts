import { BlockList } from 'node:net';
import { parseAddress, parseForwarded, type Address } from './address';

/** Who is trusted to report the client's address: nobody, a number of hops before us, or proxies in these networks. */
export type TrustedProxies =
  | { readonly kind: 'none' }
  | { readonly kind: 'hops'; readonly hops: number }
  | { readonly kind: 'networks'; readonly includes: (address: Address) => boolean };

const MAX_HOPS = 32;
const BITS = { ipv4: 32, ipv6: 128 };
const NETWORK = /^([^/]+)(?:\/([0-9]{1,3}))?$/;

const addNetwork = (list: BlockList, text: string): boolean => {
  const [, address = '', length] = NETWORK.exec(text) ?? [];
  const parsed = address.includes('%') ? undefined : parseAddress(address);
  if (parsed === undefined) return false;
  // The prefix length of an IPv4-mapped address counts the bits of the IPv6 notation.
  const spelling = address.includes(':') ? 'ipv6' : 'ipv4';
  const bits = Number(length ?? BITS[spelling]) - (BITS[spelling] - BITS[parsed.family]);
  if (bits < 0 || bits > BITS[parsed.family]) return false;
  list.addSubnet(parsed.text, bits, parsed.family);
  return true;
};

/** Parses the setting: nothing, a number of hops, or networks. Undefined: it is invalid. */
export const readTrustedProxies = (text: string): TrustedProxies | undefined => {
  if (text === '' || text === '0') return { kind: 'none' };
  if (/^[0-9]{1,3}$/.test(text))
    return Number(text) <= MAX_HOPS ? { kind: 'hops', hops: Number(text) } : undefined;
  const list = new BlockList();
  if (!text.split(',').every((network) => addNetwork(list, network.trim()))) return undefined;
  return { kind: 'networks', includes: (address) => list.check(address.text, address.family) };
};

/** Where a request came from, as far as that can be trusted. */
export interface Origin {
  readonly address: Address;
  /** False: the peer is not trusted, and its forwarded header is ignored. */
  readonly trusted: boolean;
}

/** Each proxy appends the address of its peer, so with a known number of hops the client is at a known index. */
const afterHops = (peer: Address, elements: readonly string[], hops: number): Address =>
  parseForwarded(elements.at(-hops) ?? '') ?? peer;

/** The first address from the right that is not a trusted proxy. Stops before an element that cannot be parsed. */
const beyondNetworks = (
  peer: Address,
  elements: readonly string[],
  includes: (address: Address) => boolean,
): Address => {
  let nearest = peer;
  for (const element of elements.toReversed()) {
    if (!includes(nearest)) return nearest;
    const next = parseForwarded(element);
    if (next === undefined) return nearest;
    nearest = next;
  }
  return nearest;
};

/**
 * A client cannot spoof its address: what it sends is to the left of what the trusted proxies append. If the chain is
 * too short or an element is not an address, the result is the nearest address that is known.
 */
export const originOf = (
  proxies: TrustedProxies,
  peer: Address,
  forwardedFor: string | undefined,
): Origin => {
  const elements = forwardedFor === undefined ? [] : forwardedFor.split(',');
  switch (proxies.kind) {
    case 'none':
      return { address: peer, trusted: false };
    case 'hops':
      return { address: afterHops(peer, elements, proxies.hops), trusted: true };
    case 'networks':
      return { address: beyondNetworks(peer, elements, proxies.includes), trusted: proxies.includes(peer) };
  }
};
