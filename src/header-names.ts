/** The names of our own headers, from the configured prefix. */
export interface HeaderNames {
  readonly apiKey: string;
  readonly traceId: string;
  readonly idempotencyKey: string;
  readonly readPending: string;
  readonly completeUntil: string;
  readonly totalItems: string;
}

export const headerNames = (prefix: string): HeaderNames => ({
  apiKey: `${prefix}-API-KEY`,
  traceId: `${prefix}-TRACE-ID`,
  idempotencyKey: `${prefix}-IDEMPOTENCY-KEY`,
  readPending: `${prefix}-READ-PENDING`,
  completeUntil: `${prefix}-COMPLETE-UNTIL`,
  totalItems: `${prefix}-TOTAL-ITEMS`,
});
