import { existsSync, linkSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { fault, messageOf, type Fault } from '../../fault';
import { closeAlone, isBusy, openAlone, type Database } from '../../sqlite/database';
import { copyMeta, mustMatchManifest, withBackup, type BackedUp, type OnProgress } from './backup';
import { copyEvents } from './backup-events';
import { createTables, LOG_FILE, logPath, restoringOf, stillThere, syncFile } from './log-file';

const refused = (why: string): Fault => fault('restore_refused', `${why} Nothing was restored.`);

/** Except for what a restore leaves behind. */
const mustBeEmpty = (target: string): void => {
  const found = readdirSync(target).find((name) => !name.startsWith(restoringOf(LOG_FILE)));
  if (found !== undefined)
    throw refused(
      `The folder ${target} contains ${found}. A backup is only restored into an empty folder: name another DATA_DIR, or move the contents away.`,
    );
};

const beingRestored = (target: string): Fault =>
  refused(`Another backup is being restored into the folder ${target}.`);

const openClaim = (path: string, target: string): Database => {
  try {
    return openAlone(path);
  } catch (error) {
    throw isBusy(error)
      ? beingRestored(target)
      : refused(`Remove ${path}, which cannot be opened (${messageOf(error)}), and try again.`);
  }
};

/** A restore that was killed at its very end leaves another name of its log, which may have been moved away since. */
const forgetFinished = (path: string): void => {
  const names = statSync(path, { throwIfNoEntry: false })?.nlink ?? 0;
  if (names > 1) rmSync(path);
};

/**
 * Opens the file that becomes the log. As long as it is there, nobody creates a log in the folder (`findLog`); as long as
 * it is open, nobody else can open it. What an interrupted restore left in it is removed.
 */
const claim = (target: string, path: string): { readonly db: Database; release(): void } => {
  mustBeEmpty(target);
  forgetFinished(path);
  if (!existsSync(path)) writeFileSync(path, '', { flag: 'a' });
  const isOurs = stillThere(path);
  const db = openClaim(path, target);
  const release = (): void => {
    if (isOurs()) for (const end of ['', '-journal']) rmSync(path + end, { force: true });
    closeAlone(db);
  };
  try {
    // Checked again, since the restore that had the file open may have finished or failed just now.
    mustBeEmpty(target);
    if (!isOurs()) throw beingRestored(target);
    db.exec('DROP TABLE IF EXISTS events; DROP TABLE IF EXISTS meta; PRAGMA user_version = 0');
    createTables(db, path);
    return { db, release };
  } catch (error) {
    release();
    throw error;
  }
};

/** Only where there is no log, and no other file of one. */
const giveName = (path: string, target: string): void => {
  mustBeEmpty(target);
  try {
    linkSync(path, logPath(target));
  } catch (error) {
    mustBeEmpty(target);
    throw error;
  }
  syncFile(target);
};

/** Restores a backup into an empty folder. What was restored is verified before it gets the name of a log. */
export const restoreBackup = async (
  folder: string,
  target: string,
  onProgress: OnProgress,
): Promise<BackedUp> => {
  const path = restoringOf(logPath(target));
  const { db, release } = claim(target, path);
  try {
    const restored = await withBackup(db, folder, onProgress, async ({ manifest }) => {
      copyMeta(db);
      await copyEvents(db, manifest.last, (copied) => onProgress('copying', copied, manifest.events));
      return mustMatchManifest(db, 'main', { manifest, where: path, onProgress });
    });
    giveName(path, target);
    return restored;
  } finally {
    release();
  }
};
