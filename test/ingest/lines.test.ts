import { linesOf, MAX_LINE_BYTES, type Line } from '../../src/ingest/lines';

async function* chunksOf(chunks: Iterable<Buffer | string>): AsyncGenerator<Buffer | string> {
  yield* chunks;
}

const linesIn = async (...chunks: readonly (Buffer | string)[]): Promise<readonly Line[]> => {
  const found: Line[] = [];
  for await (const lines of linesOf(chunksOf(chunks))) found.push(...lines);
  return found;
};

const texts = (...lines: readonly string[]): readonly Line[] =>
  lines.map((text, at) => ({ number: at + 1, text }));

const cutEvery = (bytes: Buffer, length: number): readonly Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) =>
    bytes.subarray(at * length, (at + 1) * length),
  );

const TOO_LONG = `it is longer than ${MAX_LINE_BYTES} bytes`;

describe('lines', () => {
  it.each<[string, readonly string[], readonly string[]]>([
    ['nothing', [], []],
    ['an empty chunk', [''], []],
    ['one line', ['a\n'], ['a']],
    ['a last line without a line break', ['a\nb'], ['a', 'b']],
    ['CRLF', ['a\r\nb\r\n'], ['a', 'b']],
    ['CRLF split in the middle', ['a\r', '\nb\r', '\n'], ['a', 'b']],
    ['a last line that ends with CR alone', ['a\r\nb\r'], ['a', 'b']],
    ['a CR inside a line', ['a\rb\n'], ['a\rb']],
    ['empty lines, which count', ['\n\na\n\r\n'], ['', '', 'a', '']],
    ['a line over many chunks', ['a', 'b', 'c\nd', 'e', '\n'], ['abc', 'de']],
    ['a byte order mark at the start only', ['\uFEFFa\n\uFEFFb\n'], ['a', '\uFEFFb']],
    ['other line separators, which are text', ['a\u2028b\u0085c\n'], ['a\u2028b\u0085c']],
  ])('are split from %s', async (_, chunks, expected) => {
    expect(await linesIn(...chunks)).toEqual(texts(...expected));
  });

  it.each([1, 2, 3, 5, 7])('keep characters intact that are split every %s bytes', async (length) => {
    const lines = ['Grüße', '漢字', '😀 👩‍👩‍👧', ''];
    const bytes = Buffer.from(`${lines.join('\n')}\n`);
    expect(await linesIn(...cutEvery(bytes, length))).toEqual(texts(...lines));
  });

  it('are yielded as soon as they are complete', async () => {
    const seen: string[] = [];
    const source = async function* () {
      yield 'a\nb';
      seen.push('asked for more');
      yield 'c\n';
    };
    for await (const lines of linesOf(source()))
      seen.push(...lines.map((line) => ('text' in line ? line.text : line.fault)));
    expect(seen).toEqual(['a', 'asked for more', 'bc']);
  });

  it('are refused by number if they are too long, and the next one is accepted', async () => {
    const long = Buffer.alloc(300_000, 'x');
    const whole = Buffer.concat([Buffer.from('a\n'), long, Buffer.from('\nb\n'), long]);
    for (const chunks of [[whole], cutEvery(whole, 65_536), cutEvery(whole, 1_000)])
      expect(await linesIn(...chunks)).toEqual([
        { number: 1, text: 'a' },
        { number: 2, fault: TOO_LONG },
        { number: 3, text: 'b' },
        { number: 4, fault: TOO_LONG },
      ]);
  });

  it.each(['\n', '\r\n', ''])('may be exactly as long as the maximum, before the end %j', async (end) => {
    const longest = 'x'.repeat(MAX_LINE_BYTES);
    expect(await linesIn(`${longest}${end}`)).toEqual(texts(longest));
    expect(await linesIn(`${longest}x${end}`)).toEqual([{ number: 1, fault: TOO_LONG }]);
    expect(await linesIn(`${longest}\r\r${end}`)).toEqual([{ number: 1, fault: TOO_LONG }]);
  });

  it('are refused if they are not UTF-8', async () => {
    const latin = Buffer.from('Gr\xFC\xDFe\n', 'latin1');
    const half = Buffer.from('😀').subarray(0, 2);
    expect(await linesIn('a\n', latin, 'b\n', half)).toEqual([
      { number: 1, text: 'a' },
      { number: 2, fault: 'it is not UTF-8' },
      { number: 3, text: 'b' },
      { number: 4, fault: 'it is not UTF-8' },
    ]);
  });

  it('take constant memory, however long one of them is', async () => {
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const source = async function* () {
      for (let chunk = 0; chunk < 4_000; chunk += 1) {
        yield Buffer.alloc(65_536, 'x');
        most = Math.max(most, process.memoryUsage().arrayBuffers - before);
      }
      yield '\nb\n';
    };
    const found: Line[] = [];
    for await (const lines of linesOf(source())) found.push(...lines);
    expect(found).toEqual([
      { number: 1, fault: TOO_LONG },
      { number: 2, text: 'b' },
    ]);
    expect(most).toBeLessThan(128 * 1_048_576);
  });
});
