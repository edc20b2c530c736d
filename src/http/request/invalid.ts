import { fault, type Fault } from '../../fault';

/** Field name, as sent, to what is wrong with it. */
export type FieldErrors = Readonly<Record<string, readonly string[]>>;

export const invalid = (errors: FieldErrors): Fault => {
  const sentences = Object.entries(errors).flatMap(([field, texts]) =>
    texts.map((text) => `${field} ${text}`),
  );
  return fault('validation_failed', `${sentences.join('; ')}.`, { errors });
};
