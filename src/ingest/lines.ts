/** A line of text, or a line that was too long to be kept: its number counts all the same. */
export type Line =
  { readonly number: number; readonly text: string } | { readonly number: number; readonly tooLong: true };

export const LONGEST_LINE = 262_144;

/** Cuts a stream of bytes into lines with flat memory: what is longer than the limit is dropped up to its end. */
export async function* linesOf(stream: AsyncIterable<Buffer | string>): AsyncGenerator<Line> {
  let number = 1;
  let kept: Buffer[] = [];
  let size = 0;

  const take = (piece: Buffer): void => {
    size += piece.length;
    if (size <= LONGEST_LINE) kept.push(piece);
    else kept = [];
  };
  const finish = (): Line => {
    const line: Line =
      size > LONGEST_LINE
        ? { number, tooLong: true }
        : { number, text: Buffer.concat(kept).toString('utf8') };
    number += 1;
    kept = [];
    size = 0;
    return line;
  };

  for await (const chunk of stream) {
    let rest = Buffer.from(chunk);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      take(rest.subarray(0, end));
      yield finish();
      rest = rest.subarray(end + 1);
    }
    if (rest.length > 0) take(rest);
  }
  if (size > 0) yield finish();
}
