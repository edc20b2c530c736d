import { timeStyle } from './place.js';
import { inputText, momentFrom, zoneOf } from './time.js';

/** Where people type moments: in the zone in which they read them. */

interface MomentProps {
  readonly label: string;
  readonly moment: string | undefined;
  /** Undefined: it was taken away. */
  readonly onChoose: (moment: string | undefined) => void;
}

/** Once it is left, or by Enter: while somebody types, each digit would be a moment of its own. */
export const MomentInput = ({ label, moment = '', onChoose }: MomentProps) => {
  const value = inputText(moment, timeStyle.value);
  const choose = (input: HTMLInputElement): void => {
    const text = input.value;
    // It has what is chosen, also if somebody decides to stay.
    input.value = value;
    if (text !== value) onChoose(momentFrom(text, timeStyle.value));
  };
  return (
    <label>
      {label}
      <input
        type="datetime-local"
        value={value}
        onBlur={({ currentTarget }) => choose(currentTarget)}
        onKeyDown={({ key, currentTarget }) => key === 'Enter' && choose(currentTarget)}
      />
    </label>
  );
};

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
