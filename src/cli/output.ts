import { once } from 'node:events';
import { isoNow } from '../async/clock';
import { masked } from '../domain/texts';
import type { JsonOption } from './arguments';
import type { Io } from './io';

/** Data goes to stdout, messages go to stderr. */
export const printJson = ({ stdout }: Io, value: unknown): void =>
  void stdout.write(`${JSON.stringify(value, null, 2)}\n`);

/** Prints a message of one or more lines for the user. */
export const notice = ({ stderr }: Io, text: string): void => void stderr.write(`${masked(text)}\n`);

type Cell = string | number | boolean | null | undefined;
type Row = Readonly<Record<string, Cell | readonly string[]>>;

// oxlint-disable-next-line no-control-regex -- it is meant to match control characters
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes control characters: names come from API clients, and must not control the operator's terminal. */
export const visible = (text: string): string =>
  text.replace(CONTROL, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);

const MAX_NAME_LENGTH = 28;

/** Keeps a row with a name on one line. The full name is in `--json`. */
export const shortened = (name: string): string => {
  const shown = visible(name);
  return shown.length <= MAX_NAME_LENGTH ? shown : `${shown.slice(0, MAX_NAME_LENGTH - 1)}…`;
};

/** A string unchanged, anything else as JSON. */
export const valueText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : JSON.stringify(value);

/** Of what keys did today, a part is on record; the rest will be after the day. */
const isIncomplete = (name: string, text: string): boolean =>
  name === 'last_used_at' && text.slice(0, 10) === isoNow().slice(0, 10);

const textOf = (name: string, value: Row[string]): string => {
  if (value === undefined || value === null) return '-';
  const text = visible(Array.isArray(value) ? value.join(' ') : String(value));
  return isIncomplete(name, text) ? `${text} (today, not complete)` : text;
};

/** Prints rows as an aligned table, or nothing if there are none. */
export const printTable = ({ stdout }: Io, rows: readonly Row[]): void => {
  const names = Object.keys(rows[0] ?? {});
  if (names.length === 0) return;
  const lines = [names, ...rows.map((row) => names.map((name) => textOf(name, row[name])))];
  const widths = names.map((_, column) =>
    lines.reduce((width, line) => Math.max(width, line[column]?.length ?? 0), 0),
  );
  for (const line of lines) {
    const padded = line.map((cell, column) =>
      column === line.length - 1 ? cell : cell.padEnd(widths[column] ?? 0),
    );
    stdout.write(`${padded.join('  ')}\n`);
  }
};

/** Prints a record as `name: value` lines. */
export const printRecord = ({ stdout }: Io, record: Row): void => {
  const width = Math.max(...Object.keys(record).map((name) => name.length)) + 2;
  for (const [name, value] of Object.entries(record))
    stdout.write(`${`${name}:`.padEnd(width)}${textOf(name, value)}\n`);
};

export const printOne = (io: Io, record: Row, { json }: JsonOption): void =>
  json === true ? printJson(io, record) : printRecord(io, record);

/** Prints a list, or a message if it is empty. */
export const printMany = (io: Io, rows: readonly Row[], { json }: JsonOption, whenEmpty = ''): void => {
  if (json === true) return printJson(io, rows);
  if (rows.length === 0 && whenEmpty !== '') notice(io, whenEmpty);
  printTable(io, rows);
};

/** `1 Application`, `2 Applications`. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`;

/** Writes to stdout with backpressure. */
export const writeOut = async ({ stdout }: Io, text: string | Buffer, signal: AbortSignal): Promise<void> => {
  if (signal.aborted || stdout.write(text)) return;
  await once(stdout, 'drain', { signal }).catch(() => undefined);
};

/** A process that is suspended in the middle of a write would keep its lock, and block everybody else. */
export const ignoreCtrlZ = (io: Io): void =>
  void io.on('SIGTSTP', () =>
    notice(
      io,
      'Not suspended: others may need what it has locked. Ctrl-C stops it; running it again continues.',
    ),
  );

const OUTPUT_LOST = 'output lost';

/** A signal that aborts when the user interrupts the command or its output is no longer read. */
export const untilInterrupted = (io: Io): AbortSignal => {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) io.once(signal, () => stop.abort());
  io.stdout.once('error', () => stop.abort(OUTPUT_LOST));
  return stop.signal;
};

/** Whether the command ended because its output was no longer read. How much was read before is unknown. */
export const isOutputLost = ({ reason }: AbortSignal): boolean => reason === OUTPUT_LOST;
