import { monotonicMs } from '../../clock';
import type { ApiContext } from '../api-context';

/** A request that is over, as it is counted. Nothing in it grows with what clients send. */
export interface ObservedRequest {
  readonly method: string;
  /** The declared path; undefined: nothing was found at the one that was sent. */
  readonly route: string | undefined;
  /** Undefined: the client went away before there was an answer. */
  readonly status: number | undefined;
  readonly seconds: number;
  /** The code of the problem in the answer. */
  readonly problem: string | undefined;
  /** `accepted`, or why the key was refused; undefined: it was not checked. */
  readonly keyCheck: string | undefined;
  /** The key is good for another week at the most. */
  readonly isKeyExpiring: boolean;
  /** The rate limit that refused it. */
  readonly refusedBy: string | undefined;
  /** A write that the read models did not show when it was answered. */
  readonly isReadPending: boolean;
}

export interface RequestMetrics {
  began(): void;
  ended(request: ObservedRequest): void;
}

/** Long enough before its end to hand out another one. */
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
