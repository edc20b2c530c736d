import { projections } from '../../projections/projections';
import { openApp, type App } from '../../src/app/app';
import { buildMissing } from '../../src/app/first-builds';
import { readConfiguration, type Configuration } from '../../src/configuration';
import { closeAfterwards } from '../support/closing';
import { freshFolder } from '../support/folders';
import { fillLargeLog } from '../support/large-log';
import { describeMongodb, mongodbUrl } from '../support/mongodb/databases';

/** The fewest that are built in threads of their own. */
const EVENTS = 10_000;

const openOn = async (
  events: number,
  stores: Partial<Configuration> = {},
): Promise<{ configuration: Configuration; app: App }> => {
  const DATA_DIR = await fillLargeLog(freshFolder(), events);
  const configuration = { ...readConfiguration({ DATA_DIR }), ...stores };
  const app = await openApp(configuration, () => undefined);
  closeAfterwards(app.close);
  return { configuration, app };
};

const generationsOf = async ({ replay: { readModels } }: App) => (await readModels.state()).generations;

const build = async ({ configuration, app }: Awaited<ReturnType<typeof openOn>>, abort?: AbortSignal) => {
  const percents: number[] = [];
  const errors: unknown[] = [];
  await buildMissing(app, configuration, {
    onProgress: (percent) => percents.push(percent),
    onError: (_, error) => errors.push(error),
    abort: abort ?? new AbortController().signal,
  });
  return { percents, errors };
};

const expectBuilt = async (opened: Awaited<ReturnType<typeof openOn>>): Promise<void> => {
  const { app } = opened;
  const { percents, errors } = await build(opened);
  expect(errors).toEqual([]);
  expect(percents.at(-1)).toBe(100);
  const built = await generationsOf(app);
  expect(built.map(({ isLive }) => isLive)).toEqual(projections.map(() => true));

  await app.projecting.start();
  closeAfterwards(app.projecting.stop);
  const head = await app.log.head();
  expect(await app.projecting.reached(head?.position ?? '', 10_000)).toBe(true);
  expect(await generationsOf(app)).toEqual(built);
};

describeMongodb('read models in an empty database', () => {
  it('are built in threads of their own, and projected from there on', async () => {
    await expectBuilt(await openOn(EVENTS, { MONGODB_URL: mongodbUrl() }));
  }, 60_000);
});

describe('read models that do not exist yet', () => {
  it('are built in threads of their own, and projected from there on', async () => {
    await expectBuilt(await openOn(EVENTS));
  });

  it('are built once by processes that start at the same time', async () => {
    const opened = await openOn(EVENTS);
    const outcomes = await Promise.all([build(opened), build(opened)]);
    for (const { errors } of outcomes) expect(errors).toEqual([]);
    expect(await generationsOf(opened.app)).toHaveLength(projections.length);
  });

  it('are kept as far as they were built when the start is stopped, and resumed', async () => {
    const opened = await openOn(2 * EVENTS);
    const stop = new AbortController();
    const building = build(opened, stop.signal);
    while ((await generationsOf(opened.app)).length < projections.length)
      await new Promise((resolve) => setTimeout(resolve, 5));
    stop.abort();
    expect((await building).errors).toEqual([]);
    const begun = await generationsOf(opened.app);
    expect(begun.some(({ isLive }) => !isLive)).toBe(true);

    await build(opened);
    const ids = (all: typeof begun) => all.map(({ generation }) => generation).toSorted();
    expect(ids(await generationsOf(opened.app))).toEqual(ids(begun));
  });

  it('of a short log are left to whoever projects', async () => {
    const opened = await openOn(1_000);
    expect(await build(opened)).toEqual({ percents: [], errors: [] });
    expect(await generationsOf(opened.app)).toEqual([]);
  });
});
