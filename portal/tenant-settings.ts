/** The settings of a Tenant, and what people call them. */
export const SETTINGS = [
  ['deduplicate_tokens', 'Deduplicate tokens'],
  ['fingerprint_tokens', 'Fingerprint tokens'],
] as const;
