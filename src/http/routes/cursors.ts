import { createHmac, timingSafeEqual } from 'node:crypto';

const PARTS = /^([A-Za-z0-9_-]{1,128})\.[A-Za-z0-9_-]{43}$/;

/** Compares the encoded texts: different texts may decode to the same bytes. */
const isEqual = (received: string, expected: string): boolean =>
  received.length === expected.length && timingSafeEqual(Buffer.from(received), Buffer.from(expected));

/** Opaque cursors into a list, signed so that they are valid only for the tenant and filter they were issued for. */
export const signedCursors = (secret: string) => {
  const make = (tenantId: string, filter: string, place: string): string => {
    const hmac = createHmac('sha256', secret).update(JSON.stringify([tenantId, filter, place]));
    return `${Buffer.from(place).toString('base64url')}.${hmac.digest('base64url')}`;
  };
  return {
    make,
    /** The place; undefined: the cursor is forged, truncated, or for another tenant or filter. */
    read: (tenantId: string, filter: string, cursor: string): string | undefined => {
      const match = PARTS.exec(cursor);
      if (match === null) return undefined;
      const place = Buffer.from(match[1] as string, 'base64url').toString();
      return isEqual(cursor, make(tenantId, filter, place)) ? place : undefined;
    },
  };
};

export type Cursors = ReturnType<typeof signedCursors>;
