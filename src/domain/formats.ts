/**
 * The format of a log says which event types and versions may be written to it. The operator raises it once no program
 * that cannot read the next format is running; it is never lowered. A program can read every format up to its newest.
 */
interface Format {
  readonly format: number;
  /** What the format makes possible, in words for the operator. */
  readonly allows: string;
}

/** The format of a log that does not name one: every program can read it. */
export const FIRST_FORMAT = 1;

/** The format of a copy of a log until the copy is complete. No program may use it yet. */
export const UNFINISHED_COPY = 0;

export const formats: readonly Format[] = [
  { format: FIRST_FORMAT, allows: 'everything that the first programs can read' },
  {
    format: 2,
    allows: 'keys with a name, and keys that keep working for a grace period after they are replaced',
  },
  { format: 3, allows: 'daily sums of what each key was used for' },
];

/** The newest format that this program can read and, where the log allows it, write. */
export const NEWEST_FORMAT = formats.length;
