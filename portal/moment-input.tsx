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

/** When a new key expires. A year of five digits is no moment, and must not become a key that never expires. */
export const Expiry = () => (
  <label>
    Expires, {zoneOf(timeStyle.value)} (empty: never)
    <input name="expires_at" type="datetime-local" max="9999-12-31T23:59" />
  </label>
);

export const expiryIn = (form: FormData): string | undefined =>
  momentFrom(textIn(form, 'expires_at') ?? '', timeStyle.value);
