import { isIP } from 'node:net';

const LOOPBACK = /^(?:localhost|[a-z0-9-]+\.localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]+)?$/i;

export const isLoopbackHost = (host: string | undefined): boolean => LOOPBACK.test(host ?? '');

const withoutPort = (host: string): string => host.replace(/:[0-9]+$/, '').replace(/^\[(.*)\]$/, '$1');

/**
 * Whether a `Host` is one that another site cannot have pointed here (DNS rebinding): a loopback name, an address, or the
 * name that the listener is bound to.
 */
export const isOwnHost = (host: string | undefined, boundTo: string): boolean => {
  const name = withoutPort(host ?? '').toLowerCase();
  return isLoopbackHost(host) || isIP(name) !== 0 || (name !== '' && name === boundTo.toLowerCase());
};
