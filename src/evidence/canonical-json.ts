/**
 * A JSON value in the one form of RFC 8785: members sorted by their UTF-16 code units, no spaces, numbers as in
 * ECMAScript. Plain loops, so that it goes deeper than JSON.stringify, and so than what can be stored.
 */
export const canonicalJson = (value: unknown): string => {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let text = '';
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) text += (at === 0 ? '' : ',') + canonicalJson(value[at]);
    return `[${text}]`;
  }
  const members = value as Readonly<Record<string, unknown>>;
  // oxlint-disable-next-line unicorn/no-array-sort -- the array is its own
  const names = Object.keys(members).sort();
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at] as string;
    const member = members[name];
    if (member !== undefined)
      text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`;
  }
  return `{${text}}`;
};
