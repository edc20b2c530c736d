import { once } from 'node:events';
import { masked } from '../domain/key-like';
import type { JsonOption } from './arguments';

/** Data goes to stdout; everything said about it goes to stderr. */
export const printJson = (value: unknown): void =>
  void process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);

/** One or more lines for the person at the terminal. */
export const notice = (text: string): void => void process.stderr.write(`${masked(text)}\n`);

type Cell = string | number | boolean | null | undefined;
type Row = Readonly<Record<string, Cell | readonly string[]>>;

// oxlint-disable-next-line no-control-regex -- these are what it is about
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Names come from callers of the API: on a terminal their control characters are shown, not obeyed. */
export const visible = (text: string): string =>
  text.replace(UNSEEN, (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Text as it is, anything else as JSON. */
export const valueText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : JSON.stringify(value);

const textOf = (value: Row[string]): string => {
  if (value === undefined || value === null) return '-';
  return visible(Array.isArray(value) ? value.join(' ') : String(value));
};

/** Rows as columns; nothing at all without rows. */
export const printTable = (rows: readonly Row[]): void => {
  const names = Object.keys(rows[0] ?? {});
  if (names.length === 0) return;
  const lines = [names, ...rows.map((row) => names.map((name) => textOf(row[name])))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  for (const line of lines) {
    const padded = line.map((cell, column) =>
      column === line.length - 1 ? cell : cell.padEnd(widths[column] ?? 0),
    );
    process.stdout.write(`${padded.join('  ')}\n`);
  }
};

/** One thing as `name: value` lines. */
export const printRecord = (record: Row): void => {
  const width = Math.max(...Object.keys(record).map((name) => name.length)) + 2;
  for (const [name, value] of Object.entries(record))
    process.stdout.write(`${`${name}:`.padEnd(width)}${textOf(value)}\n`);
};

export const printOne = (record: Row, { json }: JsonOption): void =>
  json === true ? printJson(record) : printRecord(record);

/** A list, or what to say when it is empty. */
export const printMany = (rows: readonly Row[], { json }: JsonOption, whenEmpty = ''): void => {
  if (json === true) return printJson(rows);
  if (rows.length === 0 && whenEmpty !== '') notice(whenEmpty);
  printTable(rows);
};

/** `1 Application`, `2 Applications`. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`;

/** Writes to stdout, and waits for a reader that is slower than we are. */
export const writeOut = async (text: string | Buffer, signal: AbortSignal): Promise<void> => {
  if (signal.aborted || process.stdout.write(text)) return;
  await once(process.stdout, 'drain', { signal }).catch(() => undefined);
};

const OUTPUT_LOST = 'output lost';

/** Aborted when the user interrupts the command, or nobody reads its output any more. */
export const untilInterrupted = (): AbortSignal => {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
  process.stdout.once('error', () => stop.abort(OUTPUT_LOST));
  return stop.signal;
};

/** Nobody knows how much of the output was read before. */
export const isOutputLost = ({ reason }: AbortSignal): boolean => reason === OUTPUT_LOST;
