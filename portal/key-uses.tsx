import { useLoaded } from './loaded.js';
import { counted, Table, Waiting } from './parts.js';
import { DAY_MS, timeText } from './time.js';
import { wordsOf } from './words.js';
import type { KeyDay } from './wire.js';

/** What a key was used for and refused on each of the last 30 days. */

type Counts = Readonly<Record<string, number>>;

const sumOf = (counts: Counts): number => Object.values(counts).reduce((sum, count) => sum + count, 0);

const DAYS = 30;
const HEIGHT = 20;

interface UsesProps {
  /** Of the key. */
  readonly path: string;
}

export const useUses = ({ path }: UsesProps) => useLoaded<readonly KeyDay[]>(`${path}/uses`);

/** `12 uses, 1 refusal`. */
export const usesText = (days: readonly KeyDay[]): string => {
  const total = (what: 'operations' | 'refusals'): number =>
    days.reduce((sum, day) => sum + sumOf(day[what]), 0);
  return `${counted(total('operations'), 'use')}, ${counted(total('refusals'), 'refusal')}`;
};

/** A bar for each day: uses, and refusals above them. */
export const UseBars = (props: UsesProps) => {
  const { value: found = [] } = useUses(props);
  const days = Array.from({ length: DAYS }, (_, i) => {
    const date = new Date(Date.now() - (DAYS - 1 - i) * DAY_MS).toISOString().slice(0, 10);
    const { operations = {}, refusals = {} } = found.find((one) => one.date === date) ?? {};
    return [sumOf(operations), sumOf(refusals)] as const;
  });
  const most = Math.max(1, ...days.map(([used, refused]) => used + refused));
  const heightOf = (count: number): number => (count === 0 ? 0 : Math.max(3, (count / most) * HEIGHT));
  const text = `${usesText(found)} in ${DAYS} days`;
  return (
    <svg
      class="uses"
      viewBox={`0 0 ${DAYS * 4} ${HEIGHT + 3}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={text}
    >
      <title>{text}</title>
      {days.map(([used, refused], i) => {
        const y = HEIGHT - heightOf(used);
        return (
          <g key={i}>
            <rect class="track" x={i * 4} width="3" y={HEIGHT + 1} height="2" />
            <rect class="bar" x={i * 4} width="3" y={y} height={heightOf(used)} />
            <rect
              class="refused"
              x={i * 4}
              width="3"
              y={Math.max(0, y - heightOf(refused))}
              height={heightOf(refused)}
            />
          </g>
        );
      })}
    </svg>
  );
};

/** `12 × get tenant, 2 × list events`: the most frequent first. */
const countsText = (counts: Counts): string =>
  Object.entries(counts)
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, count]) => `${count.toLocaleString('en')} × ${wordsOf(name)}`)
    .join(', ') || 'none';

export const Uses = (props: UsesProps) => {
  const { loaded, value } = useUses(props);
  if (value === undefined) return <Waiting loaded={loaded} />;
  if (value.length === 0) return <p class="quiet">Not used in the last {DAYS} days.</p>;
  const rows = value.map(({ date, operations, refusals, missing_permissions: missing }) => {
    const lacked = missing.map((permission) => [' ', <code key={permission}>{permission}</code>]);
    const day = timeText(`${date}T00:00:00Z`, 'utc', 'year');
    return [day, countsText(operations), [countsText(refusals), lacked]];
  });
  return <Table titles={['Day (UTC)', 'Used for', 'Refused']} rows={rows} />;
};
