import { fault, type Fault } from '../fault';
import { isLoopbackHost } from '../http/request/own-host';

/** What decides whether a session may travel over a connection. */
export interface Connection {
  readonly publicUrl: string;
  readonly trustsProxies: boolean;
  /** The address of the socket's other end. */
  readonly peer: string | undefined;
  /** The header `Host`. */
  readonly host: string | undefined;
}

/** The cookie of a session. Without `Max-Age` it ends with the browser. */
export interface SessionCookie {
  readonly name: string;
  readonly attributes: string;
}

const SECURE: SessionCookie = {
  name: '__Host-portal',
  attributes: 'Path=/; Secure; HttpOnly; SameSite=Strict',
};
const LOCAL: SessionCookie = { name: 'portal-local', attributes: 'Path=/; HttpOnly; SameSite=Strict' };

export const portalRefused = (reason: string): Fault => fault('portal_refused', reason);

const LOOPBACK_PEER = /^(?:::ffff:)?127\.|^::1$/;

/**
 * A key must not cross a network unencrypted. Behind TLS the cookie is sent over TLS only. Without, it is allowed where
 * nothing leaves the machine: both ends are loopback, and so is the name, which another site could have pointed here.
 */
export const cookieFor = ({ publicUrl, trustsProxies, peer, host }: Connection): SessionCookie => {
  if (publicUrl.startsWith('https://')) return SECURE;
  if (!trustsProxies && LOOPBACK_PEER.test(peer ?? '') && isLoopbackHost(host)) return LOCAL;
  throw portalRefused(
    'Signing in over plain HTTP would send the key unencrypted. Open the portal through TLS, with PUBLIC_URL set to its https address, or on the machine itself at a loopback address.',
  );
};

export const cookieIn = (header: string | undefined, name: string): string | undefined => {
  const prefix = `${name}=`;
  const found = (header ?? '').split(';').map((part) => part.trim());
  return found.find((part) => part.startsWith(prefix))?.slice(prefix.length);
};
