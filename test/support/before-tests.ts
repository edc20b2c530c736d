/** Makes something before the tests of a file, or of a `describe`. Its members are there from then on. */
export const beforeTests = <T extends object>(make: () => Promise<T>): T => {
  let made: T | undefined;
  beforeAll(async () => {
    made = await make();
  });
  return new Proxy({} as T, { get: (_, name) => made?.[name as keyof T] });
};
