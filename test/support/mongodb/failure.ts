/** A command's error as MongoDB reports it: code, name, message and the other fields of the reply. */
export interface CommandFailure extends Error {
  readonly code: number;
  readonly codeName: string;
  readonly more: Readonly<Record<string, unknown>>;
}

const NAMES: Readonly<Record<number, string>> = {
  2: 'BadValue',
  9: 'FailedToParse',
  14: 'TypeMismatch',
  15: 'Overflow',
  18: 'AuthenticationFailed',
  26: 'NamespaceNotFound',
  27: 'IndexNotFound',
  40: 'ConflictingUpdateOperators',
  43: 'CursorNotFound',
  48: 'NamespaceExists',
  53: 'InvalidIdField',
  59: 'CommandNotFound',
  64: 'WriteConcernTimeout',
  66: 'ImmutableField',
  67: 'CannotCreateIndex',
  72: 'InvalidOptions',
  73: 'InvalidNamespace',
  85: 'IndexOptionsConflict',
  86: 'IndexKeySpecsConflict',
  91: 'ShutdownInProgress',
  189: 'PrimarySteppedDown',
  10107: 'NotWritablePrimary',
  10334: 'BSONObjectTooLarge',
  11000: 'DuplicateKey',
  11600: 'InterruptedAtShutdown',
  11602: 'InterruptedDueToReplStateChange',
  40415: 'IDLUnknownField',
};

export const nameOfCode = (code: number): string => NAMES[code] ?? `Location${code}`;

export const failure = (
  code: number,
  message: string,
  more: Readonly<Record<string, unknown>> = {},
): CommandFailure => Object.assign(new Error(message), { code, codeName: nameOfCode(code), more });

export const isFailure = (error: unknown): error is CommandFailure =>
  error instanceof Error && 'codeName' in error && 'more' in error;
