import Ajv from 'ajv';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { currentVersion, eventSchemas } from '../../src/domain/event-schemas';
import { formats, NEWEST_FORMAT } from '../../src/domain/formats';
import type { EventType, TenantEvent } from '../../src/domain/events';
import { missingUpcasters, upcast } from '../../src/domain/upcast';
import { decode, operatorEventOf } from '../../src/event-log/codec';
import { streamNames } from '../../src/event-log/streams';
import { FOLD_VERSION, emptyFold, foldingStream, tenantEventOf } from '../../src/ledger/fold';
import { TENANT } from '../support/given';
import { linesOf } from '../support/ledgers';
import { loggedSample, readSample, sampleFiles, sampleOf } from '../support/samples';

const types = Object.keys(eventSchemas) as EventType[];
const versions = types.flatMap((type) => eventSchemas[type].map((_, i) => [type, i + 1] as const));
const streams = streamNames();

/** A history in which every event occurs once. */
const order: Readonly<Record<TenantEvent['type'], number>> = {
  TenantCreated: 0,
  ApplicationCreated: 1,
  KeyAdded: 2,
  TenantUpdated: 3,
  TenantPlanChanged: 4,
  ApplicationRenamed: 5,
  ApplicationPermissionsSet: 6,
  KeyExpirySet: 7,
  KeyRevoked: 8,
  ApplicationDeleted: 9,
  TenantDeleted: 10,
};
const history = (Object.keys(order) as TenantEvent['type'][]).toSorted((a, b) => order[a] - order[b]);

/** The state after each event of that history, all of them in the given versions. */
const statesOf = async (versionOf: (type: EventType) => number): Promise<readonly unknown[]> => {
  const folding = foldingStream(emptyFold, TENANT);
  const states: unknown[] = [];
  for (const [revision, type] of history.entries()) {
    const logged = loggedSample(sampleOf(type, versionOf(type)), revision);
    folding.take(tenantEventOf(logged, revision - 1, TENANT, streams));
    states.push((await linesOf(folding.fold())).map((line) => JSON.parse(line) as unknown));
  }
  return states;
};

const operatorTypes = ['EventSetAside', 'GapAccepted'] as const;

describe('the frozen samples', () => {
  it('are exactly one for each type and version', () => {
    const expected = [...versions, ...operatorTypes.map((type) => [type, 1] as const)];
    expect(sampleFiles()).toEqual(expected.map(([type, version]) => `${type}.v${version}.json`).toSorted());
  });

  it.each(operatorTypes)('of the operator, %s.v1.json, match their schema and are decoded', (type) => {
    const sample = readSample(`${type}.v1.json`);
    const read = operatorEventOf({ ...loggedSample(sample), stream: streams.operator() });
    expect(read).toEqual({ type, data: sample.data });
    const { reason: _, ...incomplete } = sample.data;
    expect(operatorEventOf({ ...loggedSample(sample), data: incomplete })).toBeUndefined();
    expect(operatorEventOf({ ...loggedSample(sample), metadata: { version: 2 } })).toBeUndefined();
  });

  it.each(sampleFiles().filter((file) => !operatorTypes.some((type) => file === `${type}.v1.json`)))(
    '%s matches its schema and is decoded',
    (file) => {
      const sample = readSample(file);
      expect(file).toBe(`${sample.type}.v${sample.version}.json`);
      expect(Object.keys(sample)).toEqual(['type', 'version', 'data', 'metadata']);
      expect(sample.metadata['version']).toBe(sample.version);
      expect(decode(loggedSample(sample), streams)).toMatchObject({
        status: 'good',
        event: { type: sample.type, tenantId: TENANT },
      });
    },
  );

  it.each(types)('%s has valid schemas', (type) => {
    const ajv = new Ajv({ strict: true });
    for (const { schema } of eventSchemas[type])
      expect([ajv.validateSchema(schema), ajv.errors]).toEqual([true, null]);
  });

  /** A released event keeps its format: add to this list, and never change it. */
  it('of formats after the first are these', () => {
    const later = versions
      .map(([type, version]) => [type, version, eventSchemas[type][version - 1]!.since] as const)
      .filter(([, , since]) => since !== 1);
    expect(later).toEqual([
      ['KeyAdded', 2, 2],
      ['KeyExpirySet', 1, 2],
      ['KeyUsed', 1, 3],
    ]);
    expect(formats.map(({ format }) => format)).toEqual(
      Array.from({ length: NEWEST_FORMAT }, (_, i) => i + 1),
    );
    for (const [, , since] of later) expect(since).toBeLessThanOrEqual(NEWEST_FORMAT);
  });

  it.each(types)('%s has every field that it may have', (type) => {
    const version = currentVersion(type);
    const { schema } = eventSchemas[type][version - 1]!;
    const fields = Object.keys(schema['properties'] as object).filter((field) => field !== 'tenantId');
    expect(Object.keys(sampleOf(type, version).data).toSorted()).toEqual(fields.toSorted());
  });

  /**
   * If this fails, the same events fold to another state than before: raise FOLD_VERSION, so that older snapshots are
   * ignored, and freeze the new states beside the old ones: `npm run freeze`.
   */
  it('fold to the frozen states of this FOLD_VERSION', async () => {
    const file = join(__dirname, '..', '..', '..', 'test', 'domain', `frozen-folds.v${FOLD_VERSION}.json`);
    const states = await statesOf(currentVersion);
    if (process.env['FREEZE'] !== undefined && !existsSync(file))
      writeFileSync(file, `${JSON.stringify(states, undefined, 2)}\n`);
    expect(existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : `${file} is not there`).toEqual(
      states,
    );
  });

  it('of the oldest versions can be folded as well', async () =>
    expect(await statesOf(() => 1)).toHaveLength(history.length));
});

describe('old event versions', () => {
  it('can all be upcast', () => expect(missingUpcasters(types)).toEqual([]));

  it('are upcast step by step to the newest', () => {
    const table = {
      TenantPlanChanged: [
        (data: Readonly<Record<string, unknown>>) => ({ ...data, second: 2, seen: ['1 to 2'] }),
        (data: Readonly<Record<string, unknown>>) => ({
          ...data,
          third: 3,
          seen: [...(data['seen'] as string[]), '2 to 3'],
        }),
      ],
    };
    const first = Object.freeze({ first: 1, seen: [] });
    expect(upcast('TenantPlanChanged', 1, first, table)).toEqual({
      first: 1,
      second: 2,
      third: 3,
      seen: ['1 to 2', '2 to 3'],
    });
    expect(upcast('TenantPlanChanged', 2, first, table)).toEqual({ first: 1, third: 3, seen: ['2 to 3'] });
    expect(upcast('TenantPlanChanged', 3, first, table)).toBe(first);
    expect(upcast('TenantDeleted', 1, first, table)).toBe(first);
  });
});
