import { useState } from 'preact/hooks';
import { downloadLink, refusalOf } from './api.js';
import { filters, queryOf } from './filters.js';
import { Alert } from './parts.js';

const FILES = [
  ['events.ndjson', 'Export NDJSON', 'All events of this filter, with a trailer that can be checked'],
  ['logs.csv', 'Export CSV', 'All rows of this filter'],
  ['checkpoint.txt', 'Checkpoint', 'The state of the whole log, signed: keep it to notice later changes'],
] as const;

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
      {FILES.map(([file, text, title]) => {
        const link = downloadLink(file, file === 'checkpoint.txt' ? '' : queryOf(filters.value));
        return (
          <a
            key={file}
            class="button"
            href={link}
            title={title}
            onClick={(event) => void follow(event, link)}
          >
            {text}
          </a>
        );
      })}
      <Alert text={refusal} />
    </div>
  );
};
