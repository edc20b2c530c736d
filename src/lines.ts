const LINE_FEED = 10;

/** Those that end in one chunk come together. Of a line that is too long, only enough is kept to tell. */
export async function* splitLines(chunks: AsyncIterable<Buffer | string>, maxBytes = Infinity) {
  let begun: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([begun, typeof chunk === 'string' ? Buffer.from(chunk) : chunk]);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      lines.push(bytes.subarray(start, end));
      start = end + 1;
    }
    begun = bytes.subarray(start, start + maxBytes + 2);
    if (lines.length > 0) yield lines;
  }
  if (begun.length > 0) yield [begun];
}
