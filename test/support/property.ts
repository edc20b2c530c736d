/** The seed of this run's properties. It stands in the name of each; SEED=… runs the same once more. */
export const seed = Number(process.env['SEED'] ?? Date.now() % 2_147_483_647);

export const seeded = (name: string): string => `${name} (SEED=${seed})`;
