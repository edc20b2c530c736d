import { useLayoutEffect } from 'preact/hooks';

/** What has been typed and not saved is not lost without a question. */

/** The forms, and where they are. */
const unsaved = new Map<symbol, string>();

/** While this is so, whatever would remove the form asks first. */
export const useUnsaved = (isUnsaved: boolean): void =>
  useLayoutEffect(() => {
    if (!isUnsaved) return undefined;
    const form = Symbol('form');
    unsaved.set(form, location.href);
    return () => void unsaved.delete(form);
  }, [isUnsaved]);

export const isUnsaved = (): boolean => unsaved.size > 0;

/** Goes on at once if nothing would be lost, and otherwise if somebody agrees to lose it. */
export const leave = (goOn: () => void): void => {
  if (isUnsaved() && !confirm('What you have here is not saved yet. Discard it?')) return;
  unsaved.clear();
  goOn();
};

// This module is loaded before the one that follows the history, so it hears of it first.
addEventListener(
  'popstate',
  (event) => {
    const [here] = unsaved.values();
    if (here === undefined) return;
    event.stopImmediatePropagation();
    // The address has changed already.
    history.pushState(null, '', here);
    leave(() => history.back());
  },
  { capture: true },
);

addEventListener('beforeunload', (event) => {
  if (isUnsaved()) event.preventDefault();
});
