import { createHmac, timingSafeEqual } from 'node:crypto';

/** Opaque places in a list, signed so that they hold only for the tenant and the filter that they were made for. */
export interface Cursors {
  make(tenantId: string, filter: string, place: string): string;
  /** The place, or undefined when it is forged, cut, another tenant's or another filter's. */
  read(tenantId: string, filter: string, cursor: string): string | undefined;
}

const PARTS = /^([A-Za-z0-9_-]{1,128})\.[A-Za-z0-9_-]{43}$/;

/** The whole texts are compared: different texts may decode to the same bytes. */
const isSame = (given: string, made: string): boolean =>
  given.length === made.length && timingSafeEqual(Buffer.from(given), Buffer.from(made));

export const signedCursors = (secret: string): Cursors => {
  const make: Cursors['make'] = (tenantId, filter, place) => {
    const seal = createHmac('sha256', secret).update(JSON.stringify([tenantId, filter, place]));
    return `${Buffer.from(place).toString('base64url')}.${seal.digest('base64url')}`;
  };
  return {
    make,
    read: (tenantId, filter, cursor) => {
      const match = PARTS.exec(cursor);
      if (match === null) return undefined;
      const place = Buffer.from(match[1] as string, 'base64url').toString();
      return isSame(cursor, make(tenantId, filter, place)) ? place : undefined;
    },
  };
};
