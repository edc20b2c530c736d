/** The seed of this run's property tests, part of the name of each; SEED=… repeats a run. */
export const seed = Number(process.env['SEED'] ?? Date.now() % 2_147_483_647);

export const seeded = (name: string): string => `${name} (SEED=${seed})`;

/** How often a property is tried: in a cluster each time costs a set of collections, and the queries are the same. */
export const runs = (embedded: number): number =>
  process.env['PROFILE'] === 'clustered' ? embedded / 10 : embedded;
