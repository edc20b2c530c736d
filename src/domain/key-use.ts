/** Why a known key was refused. An unknown one belongs to no tenant, so no tenant's log says anything about it. */
export const refusalReasons = ['permission_missing', 'expired', 'revoked', 'application_deleted'] as const;
export type RefusalReason = (typeof refusalReasons)[number];

/**
 * What one process saw one key do on one UTC day since its last such event, in the stream `activity-<tenantId>`. No
 * decision depends on it.
 */
export interface KeyUseEvent {
  readonly type: 'KeyUsed';
  readonly data: {
    readonly applicationId: string;
    readonly keyId: string;
    /** For example `2026-11-16`. */
    readonly date: string;
    /** How many requests the key was accepted for, by the operation id in the API description. */
    readonly operations: Readonly<Record<string, number>>;
    readonly refusals: Readonly<Partial<Record<RefusalReason, number>>>;
    /** What requests needed that were refused because a permission was missing. */
    readonly missingPermissions: readonly string[];
    /** How many events `GET /events` sent, and rows `GET /logs/csv` did. */
    readonly eventsGivenOut: number;
    readonly firstAt: string;
    readonly lastAt: string;
  };
}

export type KeyUse = KeyUseEvent['data'];

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

const times = (count: number): string => `${count} time${count === 1 ? '' : 's'}`;

const reasonText = ({ refusals, missingPermissions }: KeyUse): string =>
  Object.keys(refusals)
    .map((reason) =>
      reason === 'permission_missing' ? `lacks ${missingPermissions.join(', ')}` : reason.replace('_', ' '),
    )
    .join('; ');

/** `Key refused 2 times (lacks tenant:update), used 12 times on 2026-11-16, 500 events given out`. */
export const keyUsedMessage = (use: KeyUse): string => {
  const used = sumOf(use.operations);
  const refused = sumOf(use.refusals);
  const parts = [
    ...(refused === 0 ? [] : [`refused ${times(refused)} (${reasonText(use)})`]),
    ...(used === 0 ? [] : [`used ${times(used)}`]),
    ...(use.eventsGivenOut === 0 ? [] : [`${use.eventsGivenOut} events given out`]),
  ];
  return `Key ${parts.join(', ')} on ${use.date}`;
};
