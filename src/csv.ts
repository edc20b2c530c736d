/** A spreadsheet takes text that starts with one of these for a formula (CSV injection). */
const FORMULA = /^[=+\-@\t\r]/;
const QUOTED = /[",\r\n]/;

const cell = (value: unknown): string => {
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** The media type. */
export const CSV = 'text/csv';

/** A line as in RFC 4180, without its line break. Text that a spreadsheet would run gets an apostrophe in front. */
const csvLine = (values: readonly unknown[]): string => values.map(cell).join(',');

export const csvText = (rows: readonly (readonly unknown[])[]): string =>
  rows.map((row) => `${csvLine(row)}\r\n`).join('');
