/** The seed of this run's property tests, part of the name of each; SEED=… repeats a run. */
export const seed = Number(process.env['SEED'] ?? Date.now() % 2_147_483_647);

export const seeded = (name: string): string => `${name} (SEED=${seed})`;
