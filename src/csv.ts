/** A spreadsheet takes text that starts with one of these for a formula (CSV injection). */
const FORMULA = /^[=+\-@\t\r]/;
const QUOTED = /[",\r\n]/;

const cell = (value: unknown): string => {
  const plain = typeof value === 'string' ? value : (JSON.stringify(value ?? undefined) ?? '');
  const safe = FORMULA.test(plain) ? `'${plain}` : plain;
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** Lines as in RFC 4180. Text that a spreadsheet would run gets an apostrophe in front. */
export const csvText = (rows: readonly (readonly unknown[])[]): string =>
  rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
