import { fault, type Fault } from '../fault';
import type { ApiContext, ApiSettings } from '../http/context';
import { headerOf } from '../http/request';
import { sessions } from './sealed-session';

/** Without `Max-Age` the cookie ends with the browser. */
const COOKIES = {
  tls: { name: '__Host-portal', attributes: 'Path=/; Secure; HttpOnly; SameSite=Strict' },
  loopback: { name: 'portal-local', attributes: 'Path=/; HttpOnly; SameSite=Strict' },
};

export const portalRefused = (reason: string): Fault => fault('portal_refused', reason);

const LOOPBACK_PEER = /^(?:::ffff:)?127\.|^::1$/;
const LOOPBACK_HOST = /^(?:localhost|[a-z0-9-]+\.localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]+)?$/i;

/**
 * A key must not cross a network unencrypted. Behind TLS the cookie is sent over TLS only. Without, it is allowed where
 * nothing leaves the machine: both ends are loopback, and so is the name, which another site could have pointed here.
 */
const cookieFor = (ctx: ApiContext, { publicUrl, trustedProxies }: ApiSettings) => {
  if (publicUrl.startsWith('https://')) return COOKIES.tls;
  const isLocal =
    LOOPBACK_PEER.test(ctx.req.socket.remoteAddress ?? '') && LOOPBACK_HOST.test(headerOf(ctx, 'host') ?? '');
  if (trustedProxies === 0 && isLocal) return COOKIES.loopback;
  throw portalRefused(
    'Signing in over plain HTTP would send the key unencrypted. Open the portal through TLS, with PUBLIC_URL set to its https address, or on the machine itself at a loopback address.',
  );
};

/** The cookie that holds a session. */
export const sessionCookie = (secret: string, settings: ApiSettings) => {
  const { cookieOf, keyIn } = sessions(secret);
  const send = (ctx: ApiContext, value: string, more = ''): void => {
    const { name, attributes } = cookieFor(ctx, settings);
    ctx.set('Set-Cookie', `${name}=${value}; ${attributes}${more}`);
    ctx.status = 204;
  };
  return {
    keyOf: (ctx: ApiContext) => keyIn(ctx.cookies.get(cookieFor(ctx, settings).name) ?? ''),
    set: (ctx: ApiContext, key: string): void => send(ctx, cookieOf(key)),
    clear: (ctx: ApiContext): void => send(ctx, '', '; Max-Age=0'),
  };
};

export type SessionCookie = ReturnType<typeof sessionCookie>;
