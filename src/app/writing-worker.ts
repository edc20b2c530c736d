import { workerData } from 'node:worker_threads';
import { projections } from '../../projections/projections';
import { pause, threadMs } from '../async/clock';
import {
  answerInPlace,
  answerInThread,
  failureOf,
  type Outcome,
  type Thread,
  type ThreadBody,
} from '../async/thread';
import { openProjecting } from '../projecting/projecting';
import { isBusy } from '../sqlite/database';
import { programVersion } from '../version';
import { openStores, writersOf, type Writers } from './adapters';
import { openAll } from './open-all';
import { RESTART_MS, type WritingData, type WritingReport, type WritingRequest } from './writing-thread';

const { configuration, holder } = workerData as WritingData;
const bodies = writersOf(configuration);
const opened = new Map<keyof Writers, ThreadBody>();

const bodyOf = (to: keyof Writers): ThreadBody => {
  const body = opened.get(to) ?? bodies[to]();
  opened.set(to, body);
  return body;
};

/** The same connections that answer requests, and closed with them. */
const inPlace = (to: keyof Writers): Thread => ({
  call: answerInPlace(() => bodyOf(to)).call,
  close: async () => undefined,
});

const onError = (what: string, error: unknown): void =>
  report({ type: 'error', what, failure: failureOf(error) });

/** More appends are expected for this long after one. */
const MORE_APPENDS_MS = 1_000;
let appendedAt = -Infinity;

const openProjector = () =>
  openAll(async (closeLater) => {
    const writers = { log: inPlace('log'), readModels: inPlace('readModels') };
    const stores = closeLater(await openStores(configuration, { use: 'worker', report: onError, writers }));
    const projecting = await openProjecting({
      ...stores,
      projectors: projections,
      program: programVersion(),
      holder,
      isAwaited: () => threadMs() - appendedAt < MORE_APPENDS_MS,
      onError,
      onMoved: (...move) => report({ type: 'moved', move }),
      onParked: (tenant) => report({ type: 'parked', tenant }),
    });
    closeLater({ close: projecting.stop });
    await projecting.start();
  });

/** Projects until `ending`, and begins again while it cannot: appends do not wait for that. */
const project = async (ending: AbortSignal): Promise<void> => {
  while (!ending.aborted) {
    try {
      const projector = await openProjector();
      await new Promise((resolve) => {
        if (ending.aborted) resolve(undefined);
        ending.addEventListener('abort', resolve);
      });
      await projector.close();
    } catch (error) {
      onError('Projecting cannot begin and is tried again.', error);
      await pause(RESTART_MS, ending);
    }
  }
};

let projecting: { readonly ending: AbortController; readonly ended: Promise<void> } | undefined;

const start = (): void => {
  const ending = new AbortController();
  projecting ??= { ending, ended: project(ending.signal) };
};

const answerControl = (request: 'start' | 'stop'): Outcome => {
  if (request === 'start') start();
  else projecting?.ending.abort();
  return { value: true };
};

/** Appends come first, all of them in one transaction. */
const answer = (requests: readonly WritingRequest[]): ReturnType<ThreadBody['answer']> => {
  const outcomes = new Map<WritingRequest, Outcome | Promise<Outcome>>();
  for (const to of ['log', 'readModels', 'snapshots'] as const) {
    const own = requests.filter((request) => request.to === to);
    if (own.length === 0) continue;
    if (to === 'log') appendedAt = threadMs();
    try {
      const answers = bodyOf(to).answer(own.map(({ request }) => request));
      own.forEach((request, i) => outcomes.set(request, answers[i] as Outcome));
    } catch (error) {
      for (const request of own) outcomes.set(request, { error });
    }
  }
  return requests.map((request) =>
    request.to === 'projecting' ? answerControl(request.request) : (outcomes.get(request) as Outcome),
  );
};

/** How long to wait for an unavailable store. Exiting then is safe, because commits are atomic. */
const CLOSE_MS = 2_000;

const close = async (): Promise<void> => {
  setTimeout(() => process.exit(), CLOSE_MS).unref();
  projecting?.ending.abort();
  await projecting?.ended;
  for (const body of opened.values()) await body.close();
};

const report: (message: WritingReport) => void = answerInThread({
  answer: (requests) => answer(requests as readonly WritingRequest[]),
  isRetried: isBusy,
  close,
});
