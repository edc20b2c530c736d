/**
 * What one key was used for on one UTC day: at most one per key and day, in the stream `activity-<tenantId>`. No decision
 * depends on it.
 */
export interface KeyUseEvent {
  readonly type: 'KeyUsed';
  readonly data: {
    readonly applicationId: string;
    readonly keyId: string;
    /** For example `2026-11-16`. */
    readonly date: string;
    /** How many requests succeeded, by the operation id in the API description. */
    readonly operations: Readonly<Record<string, number>>;
    /** How many requests were answered with an error. */
    readonly failed: number;
    /** How many events `GET /events` sent, and rows of `GET /logs` as CSV. */
    readonly eventsGivenOut: number;
    readonly firstAt: string;
    readonly lastAt: string;
  };
}

export type KeyUse = KeyUseEvent['data'];

const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`;

/** `Key used 12 times on 2026-11-16, 2 of them failed, 500 events given out`. */
export const keyUsedMessage = ({ date, operations, failed, eventsGivenOut }: KeyUse): string => {
  const requests = Object.values(operations).reduce((sum, count) => sum + count, failed);
  const failures = failed === 0 ? '' : `, ${failed} of them failed`;
  const events = eventsGivenOut === 0 ? '' : `, ${counted(eventsGivenOut, 'event')} given out`;
  return `Key used ${counted(requests, 'time')} on ${date}${failures}${events}`;
};
