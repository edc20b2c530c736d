const now = performance.now.bind(performance);
const { bigint } = process.hrtime;
let passed = 0;
afterEach(() => {
  passed = 0;
  jest.restoreAllMocks();
});

/** Moves the monotonic clocks of this thread forward, until the end of the test. */
export const passTime = (ms: number): void => {
  passed += ms;
  jest.spyOn(performance, 'now').mockImplementation(() => now() + passed);
  jest.spyOn(process.hrtime, 'bigint').mockImplementation(() => bigint() + BigInt(Math.round(passed * 1e6)));
};
