import { readFileSync } from 'node:fs';

/** A probe, a scraper and a few operators. */
export const OPERATIONS_CONNECTIONS = 32;

/** More than this are unlikely to be used, and each costs some memory. */
const MAX_CONNECTIONS = 10_000;

/** For the files of the log and the read models, twice over while read models are switched, and for operations. */
const KEPT_FILES = 256;

/** The number of files and connections that this process may have open. Linux only; Node has raised it to the maximum. */
const openFilesLimit = (): number => {
  try {
    const limit = /^Max open files\s+([0-9]+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined ? Infinity : Number(limit);
  } catch {
    return Infinity;
  }
};

/** As configured, or as many as the limit on open files leaves beside the files and the operations listener. */
export const connectionLimit = (): number => {
  const files = openFilesLimit();
  return Math.min(MAX_CONNECTIONS, Math.floor(Math.max(files - KEPT_FILES, files / 2)));
};
