import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ApiContext } from '../api-context';

/** A shorter body fits into one packet anyway. */
const MIN_LENGTH = 1_024;

const zip = promisify(gzip);

/**
 * Whole bodies only: what is streamed must reach its reader at once. The entity tag stays the same, since it names the
 * revision that the body shows.
 */
export const compress = async (ctx: ApiContext): Promise<void> => {
  const { body } = ctx;
  if (typeof body !== 'string' || body.length < MIN_LENGTH) return;
  ctx.vary('Accept-Encoding');
  if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') return;
  ctx.body = await zip(body);
  ctx.set('Content-Encoding', 'gzip');
};
