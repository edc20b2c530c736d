import { DAY_MS } from './time.js';
import type { Key } from './wire.js';

/** What somebody should look at. */

export const SOON_DAYS = 14;
export const UNUSED_DAYS = 90;

export const expiresSoon = ({ expires_at: expires }: Key): boolean =>
  expires !== undefined && Date.parse(expires) < Date.now() + SOON_DAYS * DAY_MS;

export const isUnused = ({ created_at: created, last_used_at: used = created }: Key): boolean =>
  Date.parse(used) < Date.now() - UNUSED_DAYS * DAY_MS;
