import { isUtf8 } from 'node:buffer';

/** A line of text, or what is wrong with its bytes. Bad lines are numbered too. */
export type Line =
  { readonly number: number; readonly text: string } | { readonly number: number; readonly fault: string };

export const MAX_LINE_BYTES = 262_144;

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const BYTE_ORDER_MARK = '\uFEFF';

const lineOf = (number: number, given: Buffer): Line => {
  const bytes = given.at(-1) === CARRIAGE_RETURN ? given.subarray(0, -1) : given;
  if (bytes.length > MAX_LINE_BYTES) return { number, fault: `it is longer than ${MAX_LINE_BYTES} bytes` };
  if (!isUtf8(bytes)) return { number, fault: 'it is not UTF-8' };
  const text = bytes.toString('utf8');
  return { number, text: number === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text };
};

/** Those that end in one chunk come together. Of a line that is too long, only enough is kept to tell. */
export async function* linesOf(stream: AsyncIterable<Buffer | string>): AsyncGenerator<readonly Line[]> {
  let number = 0;
  let begun: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    const bytes = Buffer.concat([begun, typeof chunk === 'string' ? Buffer.from(chunk) : chunk]);
    const lines: Line[] = [];
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      lines.push(lineOf((number += 1), bytes.subarray(start, end)));
      start = end + 1;
    }
    begun = bytes.subarray(start, start + MAX_LINE_BYTES + 2);
    if (lines.length > 0) yield lines;
  }
  if (begun.length > 0) yield [lineOf(number + 1, begun)];
}
