import { createHmac, timingSafeEqual } from 'node:crypto';

/** Opaque places in a list, signed so that they hold only for the tenant and the filter that they were made for. */
export interface Cursors {
  make(tenantId: string, filter: string, place: string): string;
  /** The place, or undefined when it is forged, cut, another tenant's or another filter's. */
  read(tenantId: string, filter: string, cursor: string): string | undefined;
}

const PARTS = /^([A-Za-z0-9_-]{1,128})\.([A-Za-z0-9_-]{43})$/;

export const signedCursors = (secret: string): Cursors => {
  const seal = (tenantId: string, filter: string, place: string): Buffer =>
    createHmac('sha256', secret)
      .update(JSON.stringify([tenantId, filter, place]))
      .digest();
  return {
    make: (tenantId, filter, place) =>
      `${Buffer.from(place).toString('base64url')}.${seal(tenantId, filter, place).toString('base64url')}`,
    read: (tenantId, filter, cursor) => {
      const match = PARTS.exec(cursor);
      if (match === null) return undefined;
      const place = Buffer.from(match[1] as string, 'base64url').toString();
      const found = Buffer.from(match[2] as string, 'base64url');
      return timingSafeEqual(found, seal(tenantId, filter, place)) ? place : undefined;
    },
  };
};
