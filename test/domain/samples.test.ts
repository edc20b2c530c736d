import Ajv from 'ajv';
import {
  eventSchemas,
  operatorEventSchemas,
  upcast,
  type EventType,
  type OperatorEvent,
} from '../../src/domain/events';
import { decode, operatorEventOf } from '../../src/event-log/codec';
import { streamNames } from '../../src/event-log/streams';
import { TENANT } from '../support/given';
import { loggedSample, sampleFiles, sampleOf } from '../support/samples';

const types = Object.keys(eventSchemas) as EventType[];
const operatorTypes = Object.keys(operatorEventSchemas) as OperatorEvent['type'][];
const streams = streamNames();

describe('the frozen samples', () => {
  it('are exactly one for each type', () =>
    expect(sampleFiles()).toEqual([...types, ...operatorTypes].map((type) => `${type}.v1.json`).toSorted()));

  it.each(operatorTypes)('of the operator, %s, match their schema and are decoded', (type) => {
    const sample = sampleOf(type);
    const read = operatorEventOf({ ...loggedSample(sample), stream: streams.operator() });
    expect(read).toEqual({ type, data: sample.data });
    const { reason: _reason, serviceId: _id, ...incomplete } = sample.data;
    expect(operatorEventOf({ ...loggedSample(sample), data: incomplete })).toBeUndefined();
    expect(operatorEventOf({ ...loggedSample(sample), metadata: { version: 2 } })).toBeUndefined();
  });

  it.each(types)('%s matches its schema and is decoded', (type) => {
    const sample = sampleOf(type);
    expect(Object.keys(sample)).toEqual(['type', 'version', 'data', 'metadata']);
    expect([sample.type, sample.version, sample.metadata['version']]).toEqual([type, 1, 1]);
    expect(decode(loggedSample(sample), streams)).toMatchObject({
      status: 'good',
      event: { type, tenantId: TENANT },
    });
  });

  it.each(types)('%s has a valid schema, and every field that it may have', (type) => {
    const ajv = new Ajv({ strict: true });
    const schema = eventSchemas[type];
    expect([ajv.validateSchema(schema), ajv.errors]).toEqual([true, null]);
    const fields = Object.keys(schema['properties'] as object).filter((field) => field !== 'tenantId');
    expect(Object.keys(sampleOf(type).data).toSorted()).toEqual(fields.toSorted());
  });
});

describe('old event versions', () => {
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
