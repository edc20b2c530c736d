/**
 * The format of a log says which event types and versions may be written into it. It rises when the operator says that
 * no program runs any more that cannot read the next ones, and never falls. A program reads every format that it knows.
 */
interface Format {
  readonly format: number;
  /** What becomes possible with it, for the operator. */
  readonly allows: string;
}

/** Of a log that says nothing about it: every program can read all that is written there. */
export const FIRST_FORMAT = 1;

export const formats: readonly Format[] = [
  { format: FIRST_FORMAT, allows: 'everything that the first programs can read' },
  { format: 2, allows: 'keys with a name, and keys that go on for a grace period when they are replaced' },
];

/** What this program can read and, if the log allows it, write. */
export const NEWEST_FORMAT = formats.length;
