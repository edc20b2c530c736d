import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/** What has been typed and not saved is not lost without a question. */

/** The forms, and where they are. */
const unsaved = new Map<symbol, string>();
/** What goes on once somebody has agreed to lose it. */
const leaving = signal<(() => void) | undefined>(undefined);

/** While this is so, whatever would remove the form asks first. */
export const useUnsaved = (isUnsaved: boolean): void =>
  useLayoutEffect(() => {
    if (!isUnsaved) return undefined;
    const form = Symbol('form');
    unsaved.set(form, location.href);
    return () => void unsaved.delete(form);
  }, [isUnsaved]);

export const isUnsaved = (): boolean => unsaved.size > 0;

/** Goes on at once if nothing would be lost. */
export const leave = (goOn: () => void): void => {
  if (isUnsaved()) leaving.value = goOn;
  else goOn();
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

const Question = ({ goOn }: { readonly goOn: () => void }) => {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  const stay = (): void => {
    ref.current?.close();
    leaving.value = undefined;
  };
  /** The browser tells only later that a dialog was closed; by then another question may be asked. */
  const closed = (): void => {
    if (ref.current !== null) leaving.value = undefined;
  };
  const discard = (): void => {
    stay();
    unsaved.clear();
    goOn();
  };
  return (
    <dialog ref={ref} aria-label="Not saved" onClose={closed}>
      <h2>Not saved</h2>
      <p>What you have here is not saved yet, and would be lost.</p>
      <div class="buttons">
        <button class="primary" autofocus onClick={stay}>
          Stay here
        </button>
        <button class="danger" onClick={discard}>
          Discard it
        </button>
      </div>
    </dialog>
  );
};

export const Leaving = () => (leaving.value === undefined ? null : <Question goOn={leaving.value} />);
