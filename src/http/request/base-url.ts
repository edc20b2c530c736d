import { parseAddress } from '../../limits/address';
import { originOf } from '../../limits/trusted-proxies';
import { headerOf, type ApiContext } from '../context';
import type { ApiSettings } from '../dependencies';

/** A name or an address, and possibly a port: nothing that would mean more in a shell. */
const HOST = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/i;

const isBehindTls = (ctx: ApiContext, { trustedProxies }: Pick<ApiSettings, 'trustedProxies'>): boolean => {
  const peer = parseAddress(ctx.req.socket.remoteAddress ?? '');
  if (peer === undefined || !originOf(trustedProxies, peer, undefined).trusted) return false;
  return headerOf(ctx, 'x-forwarded-proto')?.toLowerCase() === 'https';
};

/**
 * The address of this service as the client knows it: as configured, or else the one that the request was sent to. Only
 * a trusted proxy is believed that it was sent over TLS. Not for anything but to be shown to that client.
 */
export const baseUrlOf = (
  ctx: ApiContext,
  settings: Pick<ApiSettings, 'publicUrl' | 'trustedProxies'>,
): string => {
  if (settings.publicUrl !== '') return settings.publicUrl;
  const host = headerOf(ctx, 'host') ?? '';
  const own = `127.0.0.1:${ctx.req.socket.localPort}`;
  return `${isBehindTls(ctx, settings) ? 'https' : 'http'}://${HOST.test(host) ? host : own}`;
};
