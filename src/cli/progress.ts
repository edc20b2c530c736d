/** A line that overwrites itself on a terminal and is silent elsewhere. */
export const progressLine = (title: string) => {
  const isShown = process.stderr.isTTY;
  let last = 0;
  return {
    show: (text: string): void => {
      if (!isShown || Date.now() - last < 100) return;
      last = Date.now();
      process.stderr.write(`\r\u001b[K${title} ${text}`);
    },
    end: (): void => {
      if (isShown && last > 0) process.stderr.write('\r\u001b[K');
    },
  };
};

interface Step {
  readonly step: string;
  readonly done: number;
  readonly total: number;
}

/** `37%` */
export const shareOf = ({ done, total }: Pick<Step, 'done' | 'total'>): string =>
  `${Math.min(100, Math.floor((100 * done) / Math.max(1, total)))}%`;

/** How far a step is, how fast it goes, and how long it will take. */
export const stepText = () => {
  let first: (Step & { readonly at: number }) | undefined;
  return (step: Step): string => {
    if (first?.step !== step.step) first = { ...step, at: Date.now() };
    const rate = (1_000 * (step.done - first.done)) / Math.max(1, Date.now() - first.at);
    const left = rate < 1 ? '' : `, ${Math.ceil(Math.max(0, step.total - step.done) / rate)} s left`;
    return `${step.step} ${shareOf(step)} (${step.done} of ${step.total} events, ${Math.round(rate)}/s${left})`;
  };
};
