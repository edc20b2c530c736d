import { isConsistent, leafHash, rootByInclusion, rowOf, type Hash } from '../../src/evidence/tree';
import { seeded, seed } from '../support/property';
import { randomFrom } from '../support/random';
import { consistencyIn, inclusionIn, naiveRoot, rowsOf, splitOf } from './rows';

const hexOf = (hashes: readonly Hash[]): readonly string[] => hashes.map((hash) => hash.toString('hex'));
const at = <T>(list: readonly T[], index: number): T => list[index] as T;

describe('the known answers of certificate transparency', () => {
  const LEAVES = [
    '',
    '00',
    '10',
    '2021',
    '3031',
    '40414243',
    '5051525354555657',
    '606162636465666768696a6b6c6d6e6f',
  ].map((hex) => leafHash(Buffer.from(hex, 'hex').toString()));
  const ROOTS = [
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ];
  const rows = rowsOf(LEAVES);

  it('are the roots of sizes 0 to 8', () => {
    expect(hexOf(rows.roots)).toEqual(ROOTS);
  });

  it('are the proofs that rows 1 and 6 are among 8', async () => {
    expect(hexOf(await inclusionIn(rows, 0, 8))).toEqual([
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ]);
    expect(hexOf(await inclusionIn(rows, 5, 8))).toEqual([
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ]);
  });

  it('are the proof that 8 rows begin with 6', async () => {
    expect(hexOf(await consistencyIn(rows, 6, 8))).toEqual([
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ]);
  });
});

const naiveInclusion = (index: number, leaves: readonly Hash[]): readonly Hash[] => {
  if (leaves.length === 1) return [];
  const split = splitOf(leaves.length);
  const [left, right] = [leaves.slice(0, split), leaves.slice(split)];
  return index < split
    ? [...naiveInclusion(index, left), naiveRoot(right)]
    : [...naiveInclusion(index - split, right), naiveRoot(left)];
};
const naiveConsistency = (older: number, leaves: readonly Hash[], isWhole = true): readonly Hash[] => {
  if (older === leaves.length) return isWhole ? [] : [naiveRoot(leaves)];
  const split = splitOf(leaves.length);
  const [left, right] = [leaves.slice(0, split), leaves.slice(split)];
  return older <= split
    ? [...naiveConsistency(older, left, isWhole), naiveRoot(right)]
    : [...naiveConsistency(older - split, right, false), naiveRoot(left)];
};

const SMALL = 70;
const random = randomFrom(seed);
const below = (limit: number): number => Math.floor(random() * limit);
const LARGER = Array.from({ length: 4 }, () => SMALL + 1 + below(2000));
const SIZES = [...Array(SMALL + 1).keys(), ...LARGER];
const LEAVES = Array.from({ length: Math.max(...LARGER) }, (_, index) => leafHash(`row ${index}`));
const rows = rowsOf(LEAVES);

/** All of a small tree, 20 of a larger one, its first and its last among them. */
const rowsBelow = (size: number): readonly number[] =>
  size <= SMALL ? [...Array(size).keys()] : [0, size - 1, ...Array.from({ length: 18 }, () => below(size))];

const altered = (hash: Hash): Hash => Buffer.from(hash.map((byte, place) => (place === 9 ? byte ^ 4 : byte)));

/** What is no longer this proof: a hash altered, removed, exchanged with the next one, or added. */
const alterations = (proof: readonly Hash[]): readonly (readonly Hash[])[] => [
  ...proof.map((hash, place) => proof.with(place, altered(hash))),
  ...proof.map((_, place) => proof.toSpliced(place, 1)),
  ...proof.slice(1).map((hash, place) => proof.with(place, hash).with(place + 1, at(proof, place))),
  [...proof, leafHash('one more')],
  [leafHash('one more'), ...proof],
];

describe('a tree', () => {
  it(seeded('has the roots of a naive one'), () => {
    for (const size of SIZES) expect(at(rows.roots, size)).toEqual(naiveRoot(LEAVES.slice(0, size)));
  });

  it('stores each node once, in the row that completes it', () => {
    const size = SMALL;
    for (let level = 0; 2 ** level <= size; level += 1)
      for (let index = 0; (index + 1) * 2 ** level <= size; index += 1) {
        const [from, to] = [index * 2 ** level, (index + 1) * 2 ** level];
        expect(rowOf({ level, index })).toBe(to);
        expect(rows.completed[to - 1]?.[level]).toEqual(naiveRoot(LEAVES.slice(from, to)));
      }
    const ones = size.toString(2).replaceAll('0', '').length;
    expect(rows.completed.slice(0, size).flat()).toHaveLength(2 * size - ones);
  });
});

const SOME_SIZES = [...Array(33).keys(), SMALL, ...LARGER];

const isSame = (some: readonly Hash[], others: readonly Hash[]): boolean =>
  some.length === others.length && Buffer.concat(some).equals(Buffer.concat(others));

describe('a proof that a row is in a tree', () => {
  it(seeded('is the one of a naive tree, and shows the root'), async () => {
    for (const size of SIZES)
      for (const index of rowsBelow(size)) {
        const proof = await inclusionIn(rows, index, size);
        const naive = size <= SMALL ? naiveInclusion(index, LEAVES.slice(0, size)) : proof;
        const root = rootByInclusion(at(LEAVES, index), index, size, proof);
        if (!isSame(proof, naive) || root?.equals(at(rows.roots, size)) !== true)
          throw new Error(`The proof of row ${index} of ${size} is wrong.`);
      }
  });

  it(
    seeded('shows no other leaf, no other index, and no tree of a size that needs another proof'),
    async () => {
      const found: string[] = [];
      for (const size of SOME_SIZES)
        for (const index of rowsBelow(size)) {
          const proof = await inclusionIn(rows, index, size);
          const leaf = at(LEAVES, index);
          const others = [index - 1, index + 1, size, -1, below(size)].filter((other) => other !== index);
          const results = [
            rootByInclusion(altered(leaf), index, size, proof),
            ...alterations(proof).map((wrong) => rootByInclusion(leaf, index, size, wrong)),
            ...others.map((other) => rootByInclusion(leaf, other, size, proof)),
            rootByInclusion(leaf, index, 2 ** (proof.length + 1) + index, proof),
          ];
          if (results.some((root) => root?.equals(at(rows.roots, size)))) found.push(`${index} of ${size}`);
        }
      expect(found).toEqual([]);
    },
  );
});

describe('a proof that a tree begins with an older one', () => {
  const treeOf = (size: number) => ({ size, root: at(rows.roots, size) });
  const pairs = SOME_SIZES.flatMap((size) =>
    [...rowsBelow(size), size].map((older) => [older, size] as const),
  );

  it(seeded('is the one of a naive tree, and shows both roots'), async () => {
    for (const [older, size] of pairs) {
      const proof = await consistencyIn(rows, older, size);
      const naive = size <= SMALL && older > 0 ? naiveConsistency(older, LEAVES.slice(0, size)) : proof;
      if (!isSame(proof, naive) || !isConsistent(treeOf(older), treeOf(size), proof))
        throw new Error(`The proof of ${older} in ${size} is wrong.`);
    }
  });

  it(seeded('shows no other root, no other older size, and nothing if it is altered'), async () => {
    const found: string[] = [];
    for (const [older, size] of pairs) {
      const [old, now] = [treeOf(older), treeOf(size)];
      const proof = await consistencyIn(rows, older, size);
      const wrong = [
        ...alterations(proof).map((other) => isConsistent(old, now, other)),
        isConsistent({ ...old, root: altered(old.root) }, now, proof),
        // Every tree begins with an empty one, whatever its root is.
        older > 0 && isConsistent(old, { ...now, root: altered(now.root) }, proof),
        isConsistent({ ...old, size: older + 1 }, now, proof),
        older > 0 && isConsistent({ ...old, size: older - 1 }, now, proof),
        older < size && isConsistent(now, old, proof),
      ];
      if (wrong.includes(true)) found.push(`${older} in ${size}`);
    }
    expect(found).toEqual([]);
  });
});
