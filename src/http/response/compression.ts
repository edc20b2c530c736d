import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Step } from '../context';
import { compressedTag } from '../request/conditions';

/** A shorter body fits into one packet anyway. */
const MIN_LENGTH = 1_024;

const zip = promisify(gzip);

/** Skips streams, which must reach the client without delay. */
export const compress: Step = async (ctx, next) => {
  await next();
  const { body } = ctx;
  if (typeof body !== 'string' || body.length < MIN_LENGTH) return;
  ctx.vary('Accept-Encoding');
  if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') return;
  ctx.body = await zip(body);
  ctx.set('Content-Encoding', 'gzip');
  const etag = ctx.res.getHeader('ETag');
  if (typeof etag === 'string') ctx.set('ETag', compressedTag(etag));
};
