import type { Service } from './service';

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Scraped {
  readonly type: string;
  readonly families: ReadonlyMap<string, { readonly help: string; readonly type: string }>;
  readonly samples: readonly Sample[];
}

const labelsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    Array.from(text.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g), ([, name = '', value = '']) => [name, value]),
  );

export const readMetrics = (text: string, type = ''): Scraped => {
  const families = new Map<string, { help: string; type: string }>();
  const samples: Sample[] = [];
  for (const line of text.split('\n').filter((candidate) => candidate !== '')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) ([^ ]+) (.*)$/.exec(line) ?? [];
    const [, sample = '', labels = '', value] = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (kind === 'HELP') families.set(name, { help: rest, type: '' });
    else if (kind === 'TYPE') families.set(name, { help: families.get(name)?.help ?? '', type: rest });
    else if (value !== undefined)
      samples.push({ name: sample, labels: labelsOf(labels), value: Number(value) });
    else throw new Error(`Not a line of metrics: ${line}`);
  }
  return { type, families, samples };
};

export const scrape = async ({ operationsUrl }: Pick<Service, 'operationsUrl'>): Promise<Scraped> => {
  const response = await fetch(`${operationsUrl}/metrics`);
  if (!response.ok) throw new Error(await response.text());
  return readMetrics(await response.text(), response.headers.get('content-type') ?? '');
};

export const found = ({ samples }: Scraped, name: string, labels: Record<string, string> = {}): number =>
  samples.find(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )?.value ?? 0;
