import { timeStyle } from './place.js';
import { momentFrom, zoneOf } from './time.js';

export const textIn = (form: FormData, name: string): string | undefined =>
  (form.get(name) as string | null) || undefined;

/** When a new key expires. */
export const Expiry = () => (
  <label>
    Expires, {zoneOf(timeStyle.value)} (empty: never)
    <input name="expires_at" type="datetime-local" />
  </label>
);

/** What was chosen, or why it is refused: left out, it would mean never. */
export const expiryIn = (form: FormData): { readonly expires_at?: string; readonly refused?: string } => {
  const text = textIn(form, 'expires_at');
  if (text === undefined) return {};
  const expires_at = momentFrom(text, timeStyle.value);
  if (expires_at !== undefined) return { expires_at };
  return { refused: `Nothing was saved: “${text}” is not a date and time with a year of four digits.` };
};
