import { TIMES } from '../times';
import type { Io } from './io';

const CLEAR_LINE = '\r\u001b[K';

/** `37%` */
export const shareOf = (done: number, total: number): string =>
  `${Math.min(100, Math.floor((100 * done) / Math.max(1, total)))}%`;

/** `37 of 100 events, 5/s, 13 s left`. The rate is `recent` events in `ms` milliseconds. */
const paceOf = (done: number, total: number, recent: number, ms: number): string => {
  const rate = (1_000 * recent) / Math.max(1, ms);
  const left = rate < 1 ? '' : `, ${Math.ceil(Math.max(0, total - done) / rate)} s left`;
  return `${done} of ${total} events, ${Math.round(rate)}/s${left}`;
};

/** A status line that overwrites itself. Silent if stderr is not a TTY. */
const progressLine = ({ stderr }: Io, title: string) => {
  const isShown = stderr.isTTY === true;
  let shownAt = 0;
  let first = { step: '', done: 0, at: 0 };

  const show = (text: string): void => {
    if (!isShown || Date.now() - shownAt < TIMES.outputMs) return;
    shownAt = Date.now();
    stderr.write(`${CLEAR_LINE}${title} ${text}`);
  };
  return {
    show,
    /** Shows the progress of a step, which may have no name, its rate and the time left. */
    showStep: (step: string, done: number, total: number): void => {
      if (first.step !== step) first = { step, done, at: Date.now() };
      const pace = paceOf(done, total, done - first.done, Date.now() - first.at);
      show(`${step} ${shareOf(done, total)} (${pace})`.trimStart());
    },
    /** Makes room for other output. */
    clear: (): void => {
      if (isShown && shownAt > 0) stderr.write(CLEAR_LINE);
    },
  };
};

export type ProgressLine = ReturnType<typeof progressLine>;

/** Shows a progress line while the work runs. */
export const withProgress = <T>(io: Io, title: string, work: (line: ProgressLine) => Promise<T>) => {
  const line = progressLine(io, title);
  return work(line).finally(line.clear);
};
