import { parseAddress } from '../../limits/address';
import { originOf } from '../../limits/trusted-proxies';
import { headerOf, type ApiContext, type ApiDependencies } from '../api-context';

/** `Forwarded` is not read: two headers that say the same thing could contradict each other. */
const FORWARDED_FOR = 'x-forwarded-for';

/** Stands in for the address of a peer that has already disconnected. */
const GONE = 'gone';

const isForwarded = (ctx: ApiContext): boolean =>
  ctx.req.headers[FORWARDED_FOR] !== undefined || ctx.req.headers['forwarded'] !== undefined;

/** Sets the client address for the rate limits: the peer's, or the one that trusted proxies report. */
export const clientAddress = ({ trustedProxies, logger }: ApiDependencies): ((ctx: ApiContext) => void) => {
  let warned = false;

  const warn = (peer: string): void => {
    if (warned) return;
    warned = true;
    logger.warn(
      { peer },
      'ignoring a forwarded header from a peer that is not a trusted proxy; if it is your proxy, set TRUSTED_PROXIES (logged once)',
    );
  };

  return (ctx) => {
    const peer = parseAddress(ctx.req.socket.remoteAddress ?? '');
    if (peer === undefined) ctx.state.clientAddress = GONE;
    else {
      const { address, trusted } = originOf(trustedProxies, peer, headerOf(ctx, FORWARDED_FOR));
      if (!trusted && isForwarded(ctx)) warn(peer.text);
      ctx.state.clientAddress = address.counted;
    }
  };
};
