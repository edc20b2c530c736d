import { html, marked, type Html } from './layout';
import { nameOf, resolved, type ApiDescription, type JsonSchema } from './reference-document';

/** One member, parameter or header, as the API reference shows it. */
export interface Member {
  /** With the names that lead to it: `settings.name`, `data[].id`. */
  readonly name: string;
  readonly schema: JsonSchema;
  /** Whether it must be sent, is always there, or anything else that is to be known at a glance. */
  readonly presence: string;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const codes = (values: readonly unknown[]): readonly Html[] =>
  values.map((value, at) => html`${at === 0 ? '' : ', '}<code>${textOf(value)}</code>`);

const FORMATS: Readonly<Record<string, string>> = { int64: '64-bit', binary: 'bytes' };

const typeText = (schema: JsonSchema): string => {
  const { type, format, items, additionalProperties } = schema;
  if (type === undefined) return 'const' in schema || 'enum' in schema ? '' : 'any value';
  const types = [type].flat().join(' or ');
  const kind = format === undefined ? '' : ` (${FORMATS[format] ?? format})`;
  const inner = items ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
  const of = inner === undefined ? undefined : (nameOf(inner) ?? typeText(inner));
  return `${types}${kind}${of === undefined ? '' : ` of ${of}`}`;
};

const rangeOf = (what: string, least: unknown, most: unknown): readonly string[] => {
  if (least === undefined && most === undefined) return [];
  if (least === undefined) return [`${what}at most ${textOf(most)}`];
  return [
    `${what}${most === undefined ? `at least ${textOf(least)}` : `${textOf(least)} to ${textOf(most)}`}`,
  ];
};

const SHOWN = { pattern: 'pattern', default: 'default', const: 'always' } as const;

/** Its limits and default, and those of the items of a list. */
const factsOf = (schema: JsonSchema): readonly Html[] => {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, items } = schema;
  const ranges = [
    ...rangeOf('', minimum, maximum),
    ...rangeOf('length ', minLength, maxLength),
    ...rangeOf('number of items ', minItems, maxItems),
  ];
  const shown = Object.entries(SHOWN).filter(([keyword]) => schema[keyword] !== undefined);
  return [
    ...ranges.map((range) => html`<span>${range}</span>`),
    ...shown.map(([keyword, text]) => html`<span>${text} <code>${textOf(schema[keyword])}</code></span>`),
    ...(items === undefined ? [] : factsOf(items).map((fact) => html`<span>each: ${fact}</span>`)),
  ];
};

const valuesOf = ({ enum: values, items }: JsonSchema): readonly unknown[] => values ?? items?.enum ?? [];

/** All its values, or else examples. */
const examplesOf = (schema: JsonSchema): Html => {
  const values = valuesOf(schema);
  if (values.length > 0) return html`<span class="soft">One of: ${codes(values)}</span>`;
  const { examples = [], default: fallback } = schema;
  const shown = examples.filter((example) => example !== '' && example !== fallback);
  return shown.length === 0 ? html`` : html`<span class="soft">Example: ${codes(shown)}</span>`;
};

const memberItem = (prefix: string, { name, schema, presence }: Member): Html => {
  const { description = '' } = schema;
  const id = `${prefix}.${name}`;
  return html`<li id="${id}">
    <p class="facts">
      <a href="#${id}"><code>${name}</code></a> <span>${typeText(schema)}</span>
      ${presence === '' ? '' : html`<strong>${presence}</strong>`} ${factsOf(schema)}
    </p>
    <p>${marked(description)} ${examplesOf(schema)}</p>
  </li>`;
};

export const memberList = (prefix: string, members: readonly Member[]): Html =>
  members.length === 0
    ? html``
    : html`<ul class="members">
        ${members.map((member) => memberItem(prefix, member))}
      </ul>`;

/** Every member at every depth, in the order of the document. */
export const membersOf = (
  description: ApiDescription,
  schema: JsonSchema,
  texts: { readonly required: string; readonly optional: string },
): readonly Member[] => {
  const within = (path: string, one: JsonSchema): readonly Member[] => {
    const { properties = {}, required = [], oneOf = [], items, additionalProperties } = one;
    const own = Object.entries(properties).flatMap(([name, declared]): readonly Member[] => {
      const member = resolved(description, declared);
      const full = path === '' ? name : `${path}.${name}`;
      const presence = required.includes(name) ? texts.required : texts.optional;
      return [{ name: full, schema: member, presence }, ...within(full, member)];
    });
    const inside = [
      ...(items === undefined ? [] : within(`${path}[]`, resolved(description, items))),
      ...(typeof additionalProperties === 'object'
        ? within(`${path}.*`, resolved(description, additionalProperties))
        : []),
    ];
    return [...own, ...inside, ...oneOf.flatMap((variant) => within(path, resolved(description, variant)))];
  };
  return within('', resolved(description, schema));
};
