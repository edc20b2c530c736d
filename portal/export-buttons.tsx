import { useState } from 'preact/hooks';
import { download } from './api.js';
import { filters, queryOf } from './filters.js';
import { Alert } from './parts.js';

/** Downloads exactly what the filters select, however much that is. */
export const ExportButtons = () => {
  const [failure, setFailure] = useState<string>();
  const start = async (file: string): Promise<void> =>
    setFailure(await download(file, queryOf(filters.value)));
  return (
    <div class="export" role="group" aria-label="Export the current filter">
      <button
        type="button"
        title="All events of this filter, with a trailer that can be checked"
        onClick={() => void start('events.ndjson')}
      >
        Export NDJSON
      </button>
      <button type="button" title="All rows of this filter" onClick={() => void start('logs.csv')}>
        Export CSV
      </button>
      {failure === undefined ? null : <Alert text={failure} />}
    </div>
  );
};
