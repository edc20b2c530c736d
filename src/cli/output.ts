import { masked } from '../domain/key-like';

/** Data goes to stdout; everything said about it goes to stderr. */
export const printJson = (value: unknown): void =>
  void process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);

export const say = (sentence: string): void => void process.stderr.write(`${masked(sentence)}\n`);

type Cell = string | number | boolean | null | undefined;
type Row = Readonly<Record<string, Cell | readonly string[]>>;

// oxlint-disable-next-line no-control-regex -- these are what it is about
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Names come from callers of the API: on a terminal their control characters are shown, not obeyed. */
export const visible = (text: string): string =>
  text.replace(UNSEEN, (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, '0')}`);

const textOf = (value: Row[string]): string => {
  if (value === undefined || value === null) return '-';
  return visible(Array.isArray(value) ? value.join(' ') : String(value));
};

/** A list as columns, or what to say when there is nothing. */
export const printTable = (rows: readonly Row[], whenEmpty: string): void => {
  const [first] = rows;
  if (first === undefined) return say(whenEmpty);
  const names = Object.keys(first);
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

/** `1 Application`, `2 Applications`. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`;

/** What nearly every command does at its end. */
export const printOne = (record: Row, { json }: { json?: boolean }): void =>
  json === true ? printJson(record) : printRecord(record);

export const printMany = (rows: readonly Row[], { json }: { json?: boolean }, whenEmpty: string): void =>
  json === true ? printJson(rows) : printTable(rows, whenEmpty);

/** A counter that overwrites itself on a terminal and is silent elsewhere. */
export const progressLine = (what: string) => {
  const shown = process.stderr.isTTY;
  let last = 0;
  return {
    tell: (text: string): void => {
      if (!shown || Date.now() - last < 100) return;
      last = Date.now();
      process.stderr.write(`\r\u001b[K${what} ${text}`);
    },
    end: (): void => {
      if (shown && last > 0) process.stderr.write('\r\u001b[K');
    },
  };
};
