/** A campaign takes as long as it needs, and says how far it is. */
export const isCampaign = process.env['CAMPAIGN'] !== undefined;

const LINES = 20;

/** Prints how much is done, at most about twenty times, and only in a campaign. */
export const saysHowFar = (what: string, total: number): ((done: number) => void) => {
  const began = performance.now();
  let next = 1;
  return (done) => {
    if (!isCampaign || (done < next && done < total)) return;
    next = done + total / LINES;
    const seconds = ((performance.now() - began) / 1_000).toFixed(0);
    process.stderr.write(`${what}: ${done} of ${total} after ${seconds} s\n`);
  };
};
