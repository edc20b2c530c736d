import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { signal } from '@preact/signals';
import { holds } from './api.js';
import { timeStyle } from './place.js';
import { timeText, utcText } from './time.js';

/** Small pieces that several pages use. */

export const Alert = ({ text }: { readonly text: string }) => (
  <p class="alert" role="alert">
    {text}
  </p>
);

/** What a page shows instead of its content if the key may not see it. */
export const NeedsPermission = ({ permission, to }: { readonly permission: string; readonly to: string }) => (
  <main class="page">
    <div class="card">
      <h1>Not allowed</h1>
      <p>
        To {to}, a key needs the permission <code>{permission}</code>. Sign in with the key of an Application
        that has it, or have it granted.
      </p>
    </div>
  </main>
);

export const lacking = (...permissions: readonly string[]): string | undefined =>
  permissions.find((permission) => !holds(permission));

const clock = signal(Date.now());
setInterval(() => (clock.value = Date.now()), 10_000);

export const Time = ({ at }: { readonly at: string }) => (
  <time dateTime={at} title={utcText(at)}>
    {timeText(at, timeStyle.value, clock.value)}
  </time>
);

export const CopyButton = ({ text, label }: { readonly text: string; readonly label: string }) => {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <button type="button" class="small" onClick={() => void copy()} aria-live="polite">
      {isCopied ? 'Copied' : label}
    </button>
  );
};

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export const Dialog = ({ title, onClose, children }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    ref.current?.showModal();
  }, []);
  return (
    <dialog ref={ref} onClose={onClose} aria-label={title}>
      <div class="dialog-head">
        <h2>{title}</h2>
        <button type="button" onClick={() => ref.current?.close()}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
};

/** Ignores calls while one is running: a double click must not do something twice. */
export const useOneAtATime = <Args extends readonly unknown[]>(
  work: (...args: Args) => Promise<void>,
): ((...args: Args) => Promise<void>) => {
  const isBusy = useRef(false);
  return async (...args) => {
    if (isBusy.current) return;
    isBusy.current = true;
    try {
      await work(...args);
    } finally {
      isBusy.current = false;
    }
  };
};

interface FormProps {
  /** Returns why it failed; undefined: it succeeded. */
  readonly onSend: (form: FormData) => Promise<string | undefined>;
  readonly button: string;
  readonly kind: 'primary' | 'danger';
  readonly children: ComponentChildren;
}

/** Sends one request at a time: a double click must not create two of something. */
export const Form = ({ onSend, button, kind, children }: FormProps) => {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFailure(await onSend(new FormData(event.target as HTMLFormElement)));
    setBusy(false);
  };
  return (
    <form onSubmit={(event) => void send(event)}>
      {failure === undefined ? null : <Alert text={failure} />}
      {children}
      <button type="submit" class={kind} disabled={isBusy}>
        {button}
      </button>
    </form>
  );
};

interface NewKeyProps {
  readonly text: string;
  readonly onClose: () => void;
}

/** A key is shown once: it is stored nowhere. */
export const NewKey = ({ text, onClose }: NewKeyProps) => (
  <Dialog title="The new key" onClose={onClose}>
    <p>Copy it now and keep it safe. It is not stored, and cannot be shown again.</p>
    <pre class="key" tabIndex={0}>
      {text}
    </pre>
    <CopyButton text={text} label="Copy the key" />
  </Dialog>
);
