import { reporter } from '../../src/app/reporter';
import { fault } from '../../src/fault';

const AWAY = fault('read_models_unavailable', 'MongoDB is out of reach.');

const reporting = () => {
  const lines: unknown[][] = [];
  let now = 0;
  const take =
    (level: string) =>
    (...args: unknown[]): void =>
      void lines.push([level, ...args]);
  const logger = { info: take('info'), warn: take('warn'), error: take('error') };
  const report = reporter(logger as never, () => now);
  return { lines, report, after: (ms: number) => (now += ms) };
};

describe('a failure that is retried', () => {
  it('is logged once a minute, with the number of reports since', () => {
    const { lines, report, after } = reporting();
    for (let i = 0; i < 5; i += 1) report('The lease cannot be renewed.', AWAY);
    expect(lines).toEqual([['warn', { err: AWAY }, 'The lease cannot be renewed.']]);
    after(60_000);
    report('The lease cannot be renewed.', AWAY);
    expect(lines[1]).toEqual(['warn', { err: AWAY, repeated: 4 }, 'The lease cannot be renewed.']);
    after(60_000);
    report('The lease cannot be renewed.', AWAY);
    expect(lines[2]).toEqual(['warn', { err: AWAY }, 'The lease cannot be renewed.']);
  });

  it('is logged at once if it is another one, or has another reason', () => {
    const { lines, report } = reporting();
    report('The lease cannot be renewed.', AWAY);
    report('The lease cannot be renewed.', fault('log_unavailable', 'X'));
    report('Projecting stopped.', AWAY);
    report('The event log was rolled back.', fault('log_set_back', 'Y'));
    expect(lines.map(([level]) => level)).toEqual(['warn', 'warn', 'warn', 'error']);
  });

  it('is logged again if it recurs after a recovery', () => {
    const { lines, report } = reporting();
    report('The event log is out of reach.', AWAY);
    report('The event log is back.');
    report('The event log is out of reach.', AWAY);
    expect(lines.map(([level]) => level)).toEqual(['warn', 'info', 'warn']);
  });
});
