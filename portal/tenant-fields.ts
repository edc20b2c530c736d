import type { Fields } from './editing.js';
import type { Tenant } from './wire.js';

/** The settings of a Tenant, and what people call them. */
export const SETTINGS = [
  ['deduplicate_tokens', 'Deduplicate tokens'],
  ['fingerprint_tokens', 'Fingerprint tokens'],
] as const;

export const tenantFields = ({ name, settings }: Tenant): Fields => ({ name, ...settings });

export const labelOf = (field: string): string => SETTINGS.find(([name]) => name === field)?.[1] ?? 'Name';
