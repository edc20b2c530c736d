import { isAscii } from 'node:buffer';

/** The text of bytes that SQLite has put together. Most are ASCII, which need not be decoded. */
export const textOfBytes = (bytes: Uint8Array): string => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString(isAscii(buffer) ? 'latin1' : 'utf8');
};
