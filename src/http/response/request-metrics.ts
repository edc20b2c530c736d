import { monotonicMs } from '../../async/clock';
import type { ApiContext } from '../api-context';

/** A finished request, for the metrics. Clients cannot make its labels unbounded. */
export interface ObservedRequest {
  readonly method: string;
  /** The declared path; undefined: no route matched. */
  readonly route: string | undefined;
  /** Undefined: the client disconnected before there was a response. */
  readonly status: number | undefined;
  readonly seconds: number;
  /** The code of the problem in the response. */
  readonly problem: string | undefined;
  /** `accepted`, or why the key was refused; undefined: it was not checked. */
  readonly keyCheck: string | undefined;
  /** The key expires within a week. */
  readonly isKeyExpiring: boolean;
  /** The rate limit that refused it. */
  readonly refusedBy: string | undefined;
  /** A write that was not visible in the read models when it was acknowledged. */
  readonly isReadPending: boolean;
}

export interface RequestMetrics {
  began(): void;
  ended(request: ObservedRequest): void;
}

/** Leaves enough time to replace the key. */
const EXPIRING_MS = 7 * 86_400_000;

const isExpiring = ({ identity, at }: ApiContext['state']): boolean =>
  identity?.expiresAt !== undefined && Date.parse(identity.expiresAt) - Date.parse(at) < EXPIRING_MS;

const keyCheckOf = ({ problem, reason, identity }: ApiContext['state']): string | undefined => {
  if (problem === 'key_refused') return reason;
  return identity === undefined ? undefined : 'accepted';
};

export const observedRequest = (ctx: ApiContext): ObservedRequest => {
  const { state, res } = ctx;
  return {
    method: ctx.method,
    route: state.route,
    status: res.headersSent ? res.statusCode : undefined,
    seconds: (monotonicMs() - state.arrivedMs) / 1_000,
    problem: state.problem,
    keyCheck: keyCheckOf(state),
    isKeyExpiring: isExpiring(state),
    refusedBy: state.refusedBy,
    isReadPending: state.isReadPending === true,
  };
};
