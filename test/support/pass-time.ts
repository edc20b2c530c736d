const now = performance.now.bind(performance);
let passed = 0;
afterEach(() => {
  passed = 0;
  jest.restoreAllMocks();
});

/** Moves the monotonic clock of this thread forward, until the end of the test. */
export const passTime = (ms: number): void => {
  passed += ms;
  jest.spyOn(performance, 'now').mockImplementation(() => now() + passed);
};
