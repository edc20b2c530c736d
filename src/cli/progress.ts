/** A line that overwrites itself on a terminal and is silent elsewhere. */
export interface ProgressLine {
  show(text: string): void;
  /** How far a step is, how fast it goes, and how long it will take. */
  showStep(step: string, done: number, total: number): void;
  /** Makes room for other output. */
  clear(): void;
}

const EVERY_MS = 100;
const CLEARED = '\r\u001b[K';

/** `37%` */
export const shareOf = (done: number, total: number): string =>
  `${Math.min(100, Math.floor((100 * done) / Math.max(1, total)))}%`;

/** `37 of 100 events, 5/s, 13 s left`: after this many of them in this many milliseconds. */
export const paceOf = (done: number, total: number, recent: number, ms: number): string => {
  const rate = (1_000 * recent) / Math.max(1, ms);
  const left = rate < 1 ? '' : `, ${Math.ceil(Math.max(0, total - done) / rate)} s left`;
  return `${done} of ${total} events, ${Math.round(rate)}/s${left}`;
};

const progressLine = (title: string): ProgressLine => {
  const isShown = process.stderr.isTTY;
  let last = 0;
  let first = { step: '', done: 0, at: 0 };

  const show = (text: string): void => {
    if (!isShown || Date.now() - last < EVERY_MS) return;
    last = Date.now();
    process.stderr.write(`${CLEARED}${title} ${text}`);
  };
  return {
    show,
    showStep: (step, done, total) => {
      if (first.step !== step) first = { step, done, at: Date.now() };
      const pace = paceOf(done, total, done - first.done, Date.now() - first.at);
      show(`${step} ${shareOf(done, total)} (${pace})`);
    },
    clear: () => {
      if (isShown && last > 0) process.stderr.write(CLEARED);
    },
  };
};

/** Shows how far some work is, for as long as it lasts. */
export const withProgress = <T>(title: string, work: (line: ProgressLine) => Promise<T>): Promise<T> => {
  const line = progressLine(title);
  return work(line).finally(line.clear);
};
