import { isUtf8 } from 'node:buffer';
import { splitLines } from '../lines';

/** A line of text, or what is wrong with its bytes. Bad lines are numbered too. */
export type Line =
  { readonly number: number; readonly text: string } | { readonly number: number; readonly fault: string };

/** Without the line ending. */
export const MAX_LINE_BYTES = 262_144;

const CARRIAGE_RETURN = 13;
const BYTE_ORDER_MARK = '\uFEFF';

const lineOf = (number: number, given: Buffer): Line => {
  const bytes = given.at(-1) === CARRIAGE_RETURN ? given.subarray(0, -1) : given;
  if (bytes.length > MAX_LINE_BYTES) return { number, fault: `it is longer than ${MAX_LINE_BYTES} bytes` };
  if (!isUtf8(bytes)) return { number, fault: 'it is not UTF-8' };
  const text = bytes.toString('utf8');
  return { number, text: number === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text };
};

/**
 * Splits a stream of bytes into lines, and yields those that end in the same chunk together. Memory is bounded: of a line
 * that is too long, only enough is kept to tell.
 */
export async function* linesOf(stream: AsyncIterable<Buffer | string>): AsyncGenerator<readonly Line[]> {
  let number = 0;
  for await (const lines of splitLines(stream, MAX_LINE_BYTES))
    yield lines.map((line) => lineOf((number += 1), line));
}
