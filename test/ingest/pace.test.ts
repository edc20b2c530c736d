import { pace } from '../../src/ingest/pace';

/** Read models that show a position when the test says so. */
const readModels = () => {
  const shown = new Map<string, (isShown: boolean) => void>();
  return {
    shown,
    reached: (position: string) => new Promise<boolean>((resolve) => shown.set(position, resolve)),
  };
};

const isPending = async (work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => false), new Promise<boolean>((resolve) => setImmediate(resolve, true))]);

describe('the pace of ingest', () => {
  it('lets one batch be appended before the last one is shown, and no more', async () => {
    const { shown, reached } = readModels();
    const { appended } = pace(reached);
    expect(await isPending(appended('1'))).toBe(false);
    const second = appended('2');
    expect(await isPending(second)).toBe(true);
    shown.get('1')?.(true);
    expect(await isPending(second)).toBe(false);
  });

  it('asks for a batch although no other follows', async () => {
    const { shown, reached } = readModels();
    await pace(reached).appended('1');
    expect([...shown.keys()]).toEqual(['1']);
  });

  it.each([true, false])('says at the end whether everything is shown: %s', async (isShown) => {
    const { shown, reached } = readModels();
    const { appended, finished } = pace(reached);
    await appended('1');
    shown.get('1')?.(isShown);
    expect(await finished()).toBe(isShown);
    expect(await pace(reached).finished()).toBe(true);
  });

  it('fails with the read models', async () => {
    const { appended, finished } = pace(async () => Promise.reject(new Error('away')));
    await appended('1');
    await expect(appended('2')).rejects.toThrow('away');
    await expect(finished()).rejects.toThrow('away');
  });
});
