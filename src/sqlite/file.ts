import { statSync } from 'node:fs';

/** A file that was just opened by its path. */
export interface OpenedFile {
  /** Is it still what the path names? A file that was replaced or removed can still be written, but is lost when it is closed. */
  isStillThere(): boolean;
}

const idOf = (path: string): string | undefined => {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev} ${found.ino}`;
};

export const fileAt = (path: string): OpenedFile => {
  const opened = idOf(path);
  return { isStillThere: () => idOf(path) === opened };
};
