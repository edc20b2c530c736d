import { parkedNotices } from '../../src/app/parked-notices';

const blocked = (tenant_id: string, event_id = 'e1', reason = 'It is unknown.') => ({
  tenant_id,
  event_id,
  reason,
});

const PARKED = 'A tenant is parked: its read models wait at this event. tenant-ledger status shows it.';
const UNREADABLE =
  'Writes to a tenant are refused: its history cannot be read. tenant-ledger status shows it.';

/** `takeNotices` ends the interval in which reports are collected. */
const recordNotices = () => {
  const lines: unknown[][] = [];
  const notices = parkedNotices({
    warn: (...line: unknown[]) => void lines.push(['warn', ...line]),
    info: (...line: unknown[]) => void lines.push(['info', ...line]),
  });
  const parked = (projection: string, ...tenants: readonly ReturnType<typeof blocked>[]): void =>
    notices.parked({ projection, parked: tenants, isCut: false });
  const takeNotices = (): unknown[][] => {
    notices.close();
    return lines.splice(0);
  };
  return { notices, parked, takeNotices };
};

describe('the notices about parked tenants', () => {
  it('report once that a tenant is parked, in all its projections, and once that it is unparked', () => {
    const { parked, takeNotices } = recordNotices();
    parked('logs', blocked('one'));
    parked('usage', blocked('one'));
    parked('tenants');
    expect(takeNotices()).toEqual([['warn', { ...blocked('one'), projections: ['logs', 'usage'] }, PARKED]]);
    parked('logs', blocked('one'));
    parked('usage', blocked('one'));
    expect(takeNotices()).toEqual([]);
    parked('logs');
    expect(takeNotices()).toEqual([]);
    parked('usage');
    expect(takeNotices()).toEqual([['info', { tenant_id: 'one' }, 'A tenant is no longer parked.']]);
    parked('logs');
    expect(takeNotices()).toEqual([]);
  });

  it('warn once, however late another worker reaches the same event', () => {
    const { parked, takeNotices } = recordNotices();
    parked('tenants', blocked('one'));
    expect(takeNotices()).toEqual([['warn', { ...blocked('one'), projections: ['tenants'] }, PARKED]]);
    parked('logs', blocked('one'));
    parked('usage', blocked('one'));
    expect(takeNotices()).toEqual([]);
  });

  it('are repeated for another event and for another reason', () => {
    const { parked, takeNotices } = recordNotices();
    parked('logs', blocked('one'));
    takeNotices();
    parked('logs', blocked('one', 'e2'));
    expect(takeNotices()).toHaveLength(1);
    parked('logs', blocked('one', 'e2', 'It is worse.'));
    expect(takeNotices()).toEqual([
      ['warn', { ...blocked('one', 'e2', 'It is worse.'), projections: ['logs'] }, PARKED],
    ]);
  });

  it('omit a tenant that is unparked at once, as by a newer program at its start', () => {
    const { parked, takeNotices } = recordNotices();
    parked('logs', blocked('one'), blocked('two'));
    parked('logs', blocked('two'));
    expect(takeNotices()).toEqual([['warn', { ...blocked('two'), projections: ['logs'] }, PARKED]]);
  });

  it('summarize many tenants', () => {
    const { parked, takeNotices } = recordNotices();
    const many = Array.from({ length: 11 }, (_, i) => blocked(`tenant ${i}`));
    parked('logs', ...many);
    parked('usage', ...many);
    expect(takeNotices()).toEqual([
      ['warn', { tenants: 11 }, 'Many tenants are parked. tenant-ledger status lists them.'],
    ]);
    parked('logs');
    parked('usage');
    expect(takeNotices()).toEqual([['info', { tenants: 11 }, 'Many tenants are no longer parked.']]);
  });

  it('treat tenants beyond the end of a truncated list as unchanged', () => {
    const { notices, parked, takeNotices } = recordNotices();
    parked('logs', blocked('a'), blocked('b'), blocked('c'));
    takeNotices();
    notices.parked({ projection: 'logs', parked: [blocked('b')], isCut: true });
    expect(takeNotices()).toEqual([['info', { tenant_id: 'a' }, 'A tenant is no longer parked.']]);
    parked('logs', blocked('b'), blocked('c'));
    expect(takeNotices()).toEqual([]);
  });

  it('report which tenants are blocked from decisions, and which no longer are', () => {
    jest.useFakeTimers();
    const { notices, takeNotices } = recordNotices();
    const unreadable = [{ ...blocked('one'), position: null }];
    notices.watch(() => unreadable);
    jest.advanceTimersByTime(2_000);
    expect(takeNotices()).toEqual([['warn', unreadable[0], UNREADABLE]]);
    unreadable.pop();
    notices.watch(() => unreadable);
    jest.advanceTimersByTime(1_000);
    expect(takeNotices()).toEqual([
      ['info', { tenant_id: 'one' }, 'The history of a tenant can be read again.'],
    ]);
    jest.useRealTimers();
  });
});
