import { isAscii } from 'node:buffer';

/** Decodes UTF-8 bytes from SQLite, with a fast path for ASCII, the usual case. */
export const textOfBytes = (bytes: Uint8Array): string => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString(isAscii(buffer) ? 'latin1' : 'utf8');
};
