import { isUtf8 } from 'node:buffer';

/** A line of text, or what is wrong with its bytes. Bad lines are numbered too. */
export type Line =
  { readonly number: number; readonly text: string } | { readonly number: number; readonly fault: string };

/** Without the line ending. */
export const MAX_LINE_BYTES = 262_144;

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const BYTE_ORDER_MARK = '\uFEFF';

const withoutCarriageReturn = (bytes: Buffer): Buffer =>
  bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes;

const lineOf = (number: number, bytes: Buffer): Line => {
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
  let kept: Buffer[] = [];
  let size = 0;

  const keep = (piece: Buffer): void => {
    const room = MAX_LINE_BYTES + 2 - size;
    if (room <= 0 || piece.length === 0) return;
    kept.push(piece.subarray(0, room));
    size += Math.min(piece.length, room);
  };
  const finish = (): Line => {
    number += 1;
    const line = lineOf(
      number,
      withoutCarriageReturn(kept.length === 1 ? (kept[0] as Buffer) : Buffer.concat(kept)),
    );
    kept = [];
    size = 0;
    return line;
  };

  for await (const chunk of stream) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    const lines: Line[] = [];
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      keep(bytes.subarray(start, end));
      lines.push(finish());
      start = end + 1;
    }
    keep(bytes.subarray(start));
    if (lines.length > 0) yield lines;
  }
  if (size > 0) yield [finish()];
}
