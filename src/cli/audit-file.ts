import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { type Position, isJsonObject, parsedJson } from '../event-log/event-log';
import { fault, messageOf } from '../fault';
import { TIMES } from '../times';

/** Lines that wait are written at once when they are more characters than this. */
const MAX_WAITING = 1_048_576;

/** Where `audit --follow --output` writes, and where it notes how far it is. */
export interface FollowedFiles {
  readonly output: string;
  readonly cursorFile: string;
}

/** The position in the cursor file. Undefined: there is no such file yet. */
export const readCursor = (cursorFile: string, log: string): Position | undefined => {
  if (!fs.existsSync(cursorFile)) return undefined;
  const cursor = parsedJson(fs.readFileSync(cursorFile, 'utf8'));
  const { position, log: named } = isJsonObject(cursor) ? cursor : {};
  if (typeof position !== 'string')
    throw fault('wrong_usage', `${cursorFile} is no cursor file of audit --follow. Name another file.`);
  if (named === log) return position;
  throw fault(
    'wrong_usage',
    `${cursorFile} belongs to the log ${String(named)}, and this is the log ${log}. Name a new cursor file for it.`,
  );
};

/** Makes the names of the files in a folder survive a power loss. */
const syncFolderOf = (file: string): void => {
  const folder = fs.openSync(dirname(file), 'r');
  fs.fsyncSync(folder);
  fs.closeSync(folder);
};

/**
 * The file is opened each time, so that another program may move it away. A line that a killed process has left
 * incomplete is ended, so that the next one begins at its own line.
 */
const append = (output: string, text: string): void => {
  const file = fs.openSync(output, 'a+');
  const { size } = fs.fstatSync(file);
  const last = Buffer.from('\n');
  if (size > 0) fs.readSync(file, last, 0, 1, size - 1);
  fs.appendFileSync(file, last.toString() === '\n' ? text : `\n${text}`, { flush: true });
  fs.closeSync(file);
  if (size === 0) syncFolderOf(output);
};

const replace = (file: string, text: string): void => {
  fs.writeFileSync(`${file}.new`, text, { flush: true });
  fs.renameSync(`${file}.new`, file);
  syncFolderOf(file);
};

/**
 * Appends lines to the output, and then notes up to where: both are on the disk, in this order. So no line is missing
 * after a crash, and some may be there twice.
 */
export const followedFile = (
  { output, cursorFile }: FollowedFiles,
  log: string,
  onFailure: (error: Error) => void,
) => {
  let waiting: string = '';
  let position: Position | undefined = undefined;
  const write = (): void => {
    try {
      if (waiting !== '') append(output, waiting);
      if (position !== undefined) replace(cursorFile, `${JSON.stringify({ log, position })}\n`);
    } catch (error) {
      onFailure(fault('output_failed', `The output cannot be written: ${messageOf(error)}.`));
    }
    waiting = '';
    position = undefined;
  };
  const timer = setInterval(write, TIMES.outputMs);
  return {
    add: (text: string, reached: Position | undefined): void => {
      waiting += text;
      position = reached ?? position;
      if (waiting.length > MAX_WAITING) write();
    },
    close: (): void => {
      clearInterval(timer);
      write();
    },
  };
};
