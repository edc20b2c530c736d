/** JSON has nothing to escape in it, as in most texts of an event. */
const PLAIN = /^[ !#-[\]-~]*$/;

const quoted = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text));

/** A list or an object of which a part is written. */
interface Opened {
  readonly members: Readonly<Record<string | number, unknown>>;
  /** Undefined: it is a list. */
  readonly names: readonly string[] | undefined;
  readonly length: number;
  at: number;
}

const opened = (value: object): Opened => {
  const members = value as Opened['members'];
  if (Array.isArray(value)) return { members, names: undefined, length: value.length, at: 0 };
  const names = Object.keys(members).filter((name) => members[name] !== undefined);
  // oxlint-disable-next-line unicorn/no-array-sort -- the array is its own
  return { members, names: names.sort(), length: names.length, at: 0 };
};

/**
 * A JSON value in the one form of RFC 8785: members sorted by their UTF-16 code units, no spaces, numbers as in
 * ECMAScript. However deep it is: whatever stands in the log has a leaf.
 */
export const canonicalJson = (root: unknown): string => {
  let text = '';
  const open: Opened[] = [];
  const write = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) {
      text += typeof value === 'string' ? quoted(value) : JSON.stringify(value);
      return;
    }
    text += Array.isArray(value) ? '[' : '{';
    open.push(opened(value));
  };
  write(root);
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    const { members, names, length, at } = last;
    if (at === length) {
      text += names === undefined ? ']' : '}';
      open.pop();
      continue;
    }
    if (at > 0) text += ',';
    last.at += 1;
    const name = names?.[at] ?? at;
    if (names !== undefined) text += `${quoted(String(name))}:`;
    write(members[name]);
  }
  return text;
};
