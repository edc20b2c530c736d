/** How many characters must be added, left out or replaced to turn one text into the other. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 0; i < a.length; i += 1) {
    let left = i + 1;
    row = row.map((above, j) => {
      if (j > 0) left = Math.min(left + 1, above + 1, (row[j - 1] ?? 0) + Number(a[i] !== b[j - 1]));
      return left;
    });
  }
  return row.at(-1) ?? 0;
};

const MAX_LENGTH = 64;

/** The known name that a misspelt one was probably meant to be: a longer form of it, or one with few differences. */
const nearestTo = (text: string, known: readonly string[]): string | undefined => {
  if (text.length < 3 || text.length > MAX_LENGTH) return undefined;
  const wanted = text.toLowerCase();
  const [nearest] = known
    .map((name) => ({
      name,
      differences: name.toLowerCase().startsWith(wanted) ? 0 : distance(wanted, name.toLowerCase()),
    }))
    .toSorted((a, b) => a.differences - b.differences);
  return nearest !== undefined && nearest.differences <= text.length / 3 ? nearest.name : undefined;
};

/** For error messages: the nearest name, or all of them. */
export const suggestionFor = (text: string, known: readonly string[]): string => {
  const nearest = nearestTo(text, known);
  if (nearest !== undefined) return `did you mean ${nearest}?`;
  const [last, ...others] = known.toReversed();
  return others.length === 0
    ? `there is only ${last}`
    : `there are ${others.toReversed().join(', ')} and ${last}`;
};
