/** Exit codes: 0 is success. */
export const FAILED = 1;
/** An invalid command line. */
export const WRONG_USAGE = 2;
/** The event log was set back. Starting again does not help: the operator must act. */
export const LOG_SET_BACK = 3;
/** A rebuild differs from the live read model, which stays. */
const REBUILD_DIFFERS = 4;

/** Failures that scripts may want to tell from others, by their codes. */
export const OWN_EXIT_CODES: ReadonlyMap<string | undefined, number> = new Map([
  ['log_set_back', LOG_SET_BACK],
  ['rebuild_differs', REBUILD_DIFFERS],
]);
