/** A test that not every machine, or only a campaign, can run. If it is skipped, its name says why. */
export const itIf =
  (isPossible: boolean, why: string) =>
  (name: string, work: jest.ProvidesCallback, timeoutMs?: number): void =>
    isPossible ? it(name, work, timeoutMs) : it.skip(`${name} (skipped: ${why})`, work, timeoutMs);
