import type { ApiContext } from '../api-context';

/**
 * Header fields that every answer bears. Those of a read without a body are gathered and written at once with the
 * answer: set one by one, and looked up again, they cost a sixth of a read. On every other answer they are set.
 */
export const gatherFields = ({ req, state }: ApiContext): boolean => {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  const isGathered = req.method === 'GET' && length === undefined && coding === undefined;
  if (isGathered) state.fields = [];
  return isGathered;
};

export const setField = ({ res, state }: ApiContext, name: string, value: string): void => {
  if (state.fields === undefined) res.setHeader(name, value);
  else state.fields.push(name, value);
};

/** For an answer that goes its usual way through Koa. */
export const putFields = ({ res, state }: ApiContext): void => {
  const { fields = [] } = state;
  state.fields = undefined;
  for (let at = 0; at < fields.length; at += 2) res.setHeader(fields[at] as string, fields[at + 1] as string);
};

/** Sends the answer past Koa, if its fields are gathered. */
export const sendAtOnce = (ctx: ApiContext, status: number, type: string, text: string): boolean => {
  const { fields } = ctx.state;
  if (fields === undefined) return false;
  fields.push('Content-Type', type, 'Content-Length', String(Buffer.byteLength(text)));
  ctx.res.writeHead(status, fields);
  ctx.res.end(text);
  ctx.respond = false;
  ctx.state.fields = undefined;
  return true;
};
