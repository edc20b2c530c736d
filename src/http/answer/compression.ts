import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ApiContext } from '../api-context';

/** A shorter body fits into one packet anyway. */
const MIN_LENGTH = 1_024;

const zip = promisify(gzip);

/**
 * Skips streams, which must reach the client without delay. The entity tag stays the same, since it identifies the
 * revision in the body.
 */
export const compress = async (ctx: ApiContext): Promise<void> => {
  const { body } = ctx;
  if (typeof body !== 'string' || body.length < MIN_LENGTH) return;
  ctx.vary('Accept-Encoding');
  if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') return;
  ctx.body = await zip(body);
  ctx.set('Content-Encoding', 'gzip');
};
