import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isEventType, streamKindOf } from '../../src/domain/events';
import type { LoggedEvent } from '../../src/event-log/event-log';
import { streamNames } from '../../src/event-log/streams';
import { TENANT } from './given';

/** One frozen event per type, which must be readable forever. */
export interface Sample {
  readonly type: string;
  readonly version: number;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The tests run from dist; the samples stay where they were committed. */
const FOLDER = join(__dirname, '..', '..', '..', 'test', 'samples');

export const sampleFiles = (): readonly string[] => readdirSync(FOLDER).toSorted();

export const sampleOf = (type: string): Sample =>
  JSON.parse(readFileSync(join(FOLDER, `${type}.v1.json`), 'utf8')) as Sample;

export const loggedSample = ({ type, data, metadata }: Sample, revision = 0): LoggedEvent => ({
  id: `00000000-0000-4000-a000-${String(revision).padStart(12, '0')}`,
  type,
  data,
  metadata,
  stream: streamNames()[isEventType(type) ? streamKindOf(type) : 'tenant'](TENANT),
  revision,
  position: String(revision + 1).padStart(16, '0'),
  recordedAt: '2026-02-01T00:00:00.000Z',
});
