import type { Recorded, TenantEvent } from '../../src/domain/events';
import { isRefusal, type Refusal, type RefusalCode } from '../../src/domain/refusal';
import { absent, evolve, type Decide, type DecisionContext, type Tenant } from '../../src/domain/tenant';

export const TENANT = '7f7a2c0e-6a4f-4d39-9f3c-0d5a1c2b3e4f';
export const OWNER = '00000000-0000-4000-8000-000000000001';
export const ACTOR = '00000000-0000-4000-8000-000000000002';

/** Event number n happened at the n-th minute of January 1. */
export const minute = (n: number): string => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString();

export const recordedAt = (event: TenantEvent, revision: number): Recorded<TenantEvent> => ({
  ...event,
  id: `00000000-0000-4000-9000-${String(revision).padStart(12, '0')}`,
  tenantId: TENANT,
  revision,
  position: String(revision).padStart(16, '0'),
  at: minute(revision),
  recordedAt: minute(revision),
  actor: { type: 'user', id: ACTOR },
});

export const tenantAfter = (events: readonly TenantEvent[]): Tenant =>
  events.map(recordedAt).reduce(evolve, absent);

export const byOperator: DecisionContext = { requester: { kind: 'operator' }, at: minute(30) };

const refusalOf = (decide: Decide, now: Tenant, question: DecisionContext): Refusal => {
  try {
    const events = decide(now, question);
    throw new Error(`It was not refused, but decided: ${JSON.stringify(events)}`);
  } catch (error) {
    if (isRefusal(error)) return error;
    throw error;
  }
};

/** given(history).when(decision, context).then(events) or .thenRefuses(code). */
export const given = (...history: readonly TenantEvent[]) => ({
  when: (decide: Decide, question: DecisionContext = byOperator) => ({
    // oxlint-disable-next-line unicorn/no-thenable -- the words of the tests; nobody awaits it
    then: (...expected: readonly TenantEvent[]): Tenant => {
      const decided = decide(tenantAfter(history), question);
      expect(decided).toEqual(expected);
      return tenantAfter([...history, ...decided]);
    },
    thenRefuses: (code: RefusalCode): Refusal => {
      const refused = refusalOf(decide, tenantAfter(history), question);
      expect(refused.code).toBe(code);
      expect(refused.message).not.toBe('');
      return refused;
    },
  }),
});
