import { timeStyle } from './place.js';
import { timeText } from './time.js';

/** Values and names as people read them: no codes, no ISO times, no `true`. */

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;
const CODES: Readonly<Record<string, string>> = { expires_at: 'expiry', expiresAt: 'expiry' };

/** A code as words: `permission_missing`, `settings.deduplicate_tokens`, `listApplicationKeys`. */
export const wordsOf = (code: string): string =>
  CODES[code] ??
  code
    .slice(code.lastIndexOf('.') + 1)
    .replaceAll(/[_-]+/g, ' ')
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** The same at the beginning of a line. */
export const titleOf = (code: string): string => {
  const words = wordsOf(code);
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** A value of a field, whatever it is. A name stays as somebody wrote it. */
export const valueText = (value: unknown, field = ''): string => {
  if (value === null || value === undefined || value === '') return 'none';
  if (Array.isArray(value))
    return value.length === 0 ? 'none' : value.map((one) => valueText(one)).join(', ');
  if (typeof value === 'number') return value.toLocaleString('en');
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (field === 'name') return text;
  if (text === 'true' || text === 'false') return text === 'true' ? 'yes' : 'no';
  return MOMENT.test(text) ? timeText(text, timeStyle.value) : text;
};
