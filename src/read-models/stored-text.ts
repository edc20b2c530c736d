/**
 * Keys and indexed values are any text, but the drivers of databases cut a text at its first NUL or turn every lone
 * surrogate into the same replacement character. So these are escaped with U+0001, and so is U+0001 itself. The order of
 * texts stays the same wherever they have one.
 */
const MARK = '\u0001';

/** It is stored as it is. */
export const isPlainText = (text: string): boolean =>
  !text.includes('\0') && !text.includes(MARK) && text.isWellFormed();

const storedUnit = (unit: string): string => {
  if (unit === '\0') return `${MARK}\u0001`;
  if (unit === MARK) return `${MARK}\u0002`;
  return unit.isWellFormed() ? unit : `${MARK}\u0003${unit.charCodeAt(0).toString(16)}`;
};

export const storedText = (text: string): string =>
  isPlainText(text) ? text : Array.from(text, storedUnit).join('');

export const textOf = (stored: string): string => {
  if (!stored.includes(MARK)) return stored;
  let text = '';
  for (let at = 0; at < stored.length; at += 1) {
    if (stored[at] !== MARK) text += stored[at];
    else if (stored[at + 1] === '\u0003') {
      text += String.fromCharCode(Number.parseInt(stored.slice(at + 2, at + 6), 16));
      at += 5;
    } else {
      text += stored[at + 1] === '\u0001' ? '\0' : MARK;
      at += 1;
    }
  }
  return text;
};

/** A value of a column. */
export type Field = string | number | null;

export const stored = (value: unknown): Field =>
  typeof value === 'string' ? storedText(value) : ((value ?? null) as Field);
