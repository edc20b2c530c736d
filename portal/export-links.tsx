import { useState } from 'preact/hooks';
import { downloadLink, refusalOf, tenantName } from './api.js';
import { filters, queryOf, scope, SCOPES } from './filters.js';
import { nameOf } from './names.js';
import { Notice } from './parts.js';
import { timeStyle } from './place.js';
import { dayOf } from './time.js';

const FILES = [
  ['ndjson', 'Export NDJSON', 'All events of this filter, with a trailer that can be checked'],
  ['csv', 'Export CSV', 'All rows of this filter'],
  ['txt', 'Checkpoint', 'The state of the whole log, signed: keep it to notice later changes'],
] as const;

/** Named after the Tenant, the filter and the day: `acme-tenant-update-2026-11-19`. */
const fileName = (isWhole: boolean): string => {
  const { start_date: from = '', end_date: upTo = '', actor_id: actor, source, ...others } = filters.value;
  const filter = [
    source && SCOPES[scope.value][0],
    ...Object.values(others),
    actor && nameOf('application', actor),
    from.slice(0, 10),
    upTo.slice(0, 10),
  ];
  const today = dayOf(new Date().toISOString(), timeStyle.value);
  return [tenantName.value ?? 'log', ...(isWhole ? ['checkpoint'] : filter), today]
    .flatMap(
      (part = '') =>
        part
          .toLowerCase()
          .match(/[a-z0-9]+/g)
          ?.join('-')
          .slice(0, 40) ?? [],
    )
    .join('-');
};

/** Links that download exactly what the filters select, however much that is, and a checkpoint of the whole log. */
export const ExportLinks = () => {
  const [refusal, setRefusal] = useState<string>();
  const follow = async (event: MouseEvent, link: string): Promise<void> => {
    event.preventDefault();
    const found = await refusalOf(link);
    setRefusal(found);
    if (found === undefined) location.assign(link);
  };
  return (
    <div class="buttons exports" role="group" aria-label="Export">
      {FILES.map(([type, text, title]) => {
        const isWhole = type === 'txt';
        const link = downloadLink(`${fileName(isWhole)}.${type}`, isWhole ? '' : queryOf(filters.value));
        return (
          <a
            key={type}
            class="button"
            href={link}
            title={title}
            onClick={(event) => void follow(event, link)}
          >
            {text}
          </a>
        );
      })}
      <Notice text={refusal} />
    </div>
  );
};
