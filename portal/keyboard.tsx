import { useEffect, useState } from 'preact/hooks';
import { moveTo } from './log-table.js';
import { Dialog, Facts } from './parts.js';
import { go, parameter, withParameters } from './place.js';

const KEYS = {
  '/': 'Go to the search',
  'j or ↓, k or ↑': 'The next row, the one before; of the list or of what is open',
  Enter: 'Open the row',
  Esc: 'Close what is open',
  '← →, Enter, Esc': 'In the chart: choose a column, zoom in, zoom out',
  '?': 'These keys',
};

/** The keys of the log, and the dialog that names them. */
export const Keyboard = () => {
  const [isHelpShown, setHelpShown] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { key, target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || !(target instanceof Element)) return;
      if (event.defaultPrevented || target.closest('dialog, input, select, textarea') !== null) return;
      const isInList = target.closest('.list') !== null;
      if (key === 'Escape' && parameter('event') !== undefined) go(withParameters({ event: undefined }));
      else if (key === 'j' || (key === 'ArrowDown' && isInList)) moveTo(1);
      else if (key === 'k' || (key === 'ArrowUp' && isInList)) moveTo(-1);
      else if (key === '/') document.getElementById('search')?.focus();
      else if (key === '?') setHelpShown(true);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  if (!isHelpShown) return null;
  return (
    <Dialog title="Keys" onClose={() => setHelpShown(false)}>
      <Facts facts={KEYS} />
    </Dialog>
  );
};
