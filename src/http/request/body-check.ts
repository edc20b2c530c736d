import Ajv, { type ErrorObject } from 'ajv';
import { nameFault } from '../../domain/names';
import { invalid } from './invalid';
import type { BodyCheck } from '../routes/route';
import type { Schema } from '../routes/schema';

/** The rule of names is the domain's own; lengths are counted there. That the schemas are schemas is for the tests. */
const ajv = new Ajv({ allErrors: true, strictTypes: false, meta: false, validateSchema: false });
ajv.addKeyword({
  keyword: 'aName',
  type: 'string',
  validate: (_: unknown, name: string) => nameFault(name) === undefined,
});

const fieldOf = (error: ErrorObject): string => {
  const path = error.instancePath.split('/').slice(1);
  const { missingProperty, additionalProperty } = error.params as Record<string, string | undefined>;
  const field = [...path, missingProperty ?? additionalProperty ?? []].flat().join('.');
  return field === '' ? 'body' : field;
};

const textOf = (error: ErrorObject, root: unknown): string => {
  switch (error.keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
      return 'is not known here';
    case 'enum':
      return `must be ${(error.params['allowedValues'] as string[]).map((value) => `"${value}"`).join(' or ')}`;
    case 'aName':
      return nameFault(valueAt(root, error.instancePath) as string) ?? 'is not a name';
    case 'type':
      return `must be ${[error.params['type']].flat().map(withArticle).join(' or ')}`;
    default:
      return error.message ?? 'is wrong';
  }
};

const withArticle = (type: string): string => {
  if (type === 'null') return 'null';
  return type === 'object' ? 'a JSON object' : `a ${type}`;
};

const valueAt = (root: unknown, path: string): unknown =>
  path
    .split('/')
    .slice(1)
    .reduce((value, key) => (value as Record<string, unknown>)[key], root);

/** A check made from a JSON Schema, with errors that name the fields as they were sent. */
export const bodyCheck = <Wire, Body>(
  schema: Schema,
  toBody: (wire: Wire) => Body,
  example: Wire,
): BodyCheck<Body> => {
  const validate = ajv.compile<Wire>(schema);
  const check = (parsed: unknown): Body => {
    if (validate(parsed)) return toBody(parsed);
    const errors: Record<string, string[]> = {};
    for (const error of validate.errors ?? []) (errors[fieldOf(error)] ??= []).push(textOf(error, parsed));
    throw invalid(errors);
  };
  return Object.assign(check, { schema, example });
};
