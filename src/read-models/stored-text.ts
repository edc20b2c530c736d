/**
 * Keys and indexed values may be any text, but database drivers truncate text at the first NUL, or turn every lone
 * surrogate into the same replacement character. So both are escaped with U+0001, as is U+0001 itself. This preserves
 * the order of well-formed texts.
 */
const ESCAPE = '\u0001';

/** Needs no escaping. */
export const isPlainText = (text: string): boolean =>
  !text.includes('\0') && !text.includes(ESCAPE) && text.isWellFormed();

const storedUnit = (unit: string): string => {
  if (unit === '\0') return `${ESCAPE}\u0001`;
  if (unit === ESCAPE) return `${ESCAPE}\u0002`;
  return unit.isWellFormed() ? unit : `${ESCAPE}\u0003${unit.charCodeAt(0).toString(16)}`;
};

export const storedText = (text: string): string =>
  isPlainText(text) ? text : Array.from(text, storedUnit).join('');

export const textOf = (stored: string): string => {
  if (!stored.includes(ESCAPE)) return stored;
  let text = '';
  for (let at = 0; at < stored.length; at += 1) {
    if (stored[at] !== ESCAPE) text += stored[at];
    else if (stored[at + 1] === '\u0003') {
      text += String.fromCharCode(Number.parseInt(stored.slice(at + 2, at + 6), 16));
      at += 5;
    } else {
      text += stored[at + 1] === '\u0001' ? '\0' : ESCAPE;
      at += 1;
    }
  }
  return text;
};

/** The value of a column. */
export type Field = string | number | null;

export const stored = (value: unknown): Field =>
  typeof value === 'string' ? storedText(value) : ((value ?? null) as Field);
