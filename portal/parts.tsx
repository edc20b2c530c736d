import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { signal, type Signal } from '@preact/signals';
import { answered, textOf, writeFailure, writer, type Failed, type Result, type Write } from './api.js';
import { isUnsaved, leave, useUnsaved } from './leaving.js';
import { timeStyle } from './place.js';
import { relativeText, timeText, type Precision } from './time.js';

/** Small pieces that several pages use. */

interface NoticeProps {
  readonly text: string | undefined;
  readonly role?: 'alert' | 'status';
}

export const Notice = ({ text, role = 'alert' }: NoticeProps) =>
  text === undefined ? null : (
    <p class={role} role={role}>
      {text}
    </p>
  );

/** Instead of what is not there yet, or not to be had. */
export const Waiting = ({ loaded }: { readonly loaded: Result<unknown> | undefined }) =>
  loaded === undefined ? (
    <p class="quiet">Loading …</p>
  ) : (
    <Notice text={loaded.ok ? undefined : textOf(loaded.problem)} />
  );

export const TableHead = ({ titles }: { readonly titles: readonly string[] }) => (
  <thead>
    <tr>
      {titles.map((title) =>
        title === '' ? (
          <td key={title} />
        ) : (
          <th key={title} scope="col">
            {title}
          </th>
        ),
      )}
    </tr>
  </thead>
);

/** The first cell says what its row is about. */
export type Cells = readonly ComponentChildren[];

interface TableProps {
  readonly titles: readonly string[];
  readonly rows: readonly Cells[];
  /** Of the rows, where one that is gone must not become another. */
  readonly ids?: readonly string[];
}

/** Nothing if there are no rows. On a phone they become paragraphs, so each cell says what it is. */
export const Table = ({ titles, rows, ids }: TableProps) =>
  rows.length === 0 ? null : (
    <table class="stacked">
      <TableHead titles={titles} />
      <tbody>
        {rows.map(([first, ...others], row) => (
          <tr key={ids?.[row]}>
            <th scope="row" dir="auto">
              {first}
            </th>
            {others.map((cell, i) => (
              <td data-label={titles[i + 1]} dir="auto">
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );

export const clock = signal(Date.now());
setInterval(() => (clock.value = Date.now()), 10_000);

interface TimeProps {
  readonly at: string;
  readonly precision?: Precision;
}

/** A moment in the zone of the viewer, or in UTC; the rest is in its title. */
export const Time = ({ at, precision }: TimeProps) => (
  <time dateTime={at} title={`${timeText(at, 'utc', 'exact')} UTC, ${relativeText(at, clock.value)}`}>
    {timeText(at, timeStyle.value, precision)}
  </time>
);

/** How long ago, or until then, where that says more than the moment. */
export const Ago = ({ at }: { readonly at: string | undefined }) =>
  at === undefined ? (
    <span class="quiet">never</span>
  ) : (
    <time dateTime={at} title={timeText(at, timeStyle.value, 'exact')}>
      {relativeText(at, clock.value)}
    </time>
  );

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly chosen: Signal<T>;
  readonly options: Readonly<Record<T, string>>;
}

export const Choice = <T extends string>({ label, chosen, options }: ChoiceProps<T>) => (
  <select
    aria-label={label}
    value={chosen.value}
    onChange={({ currentTarget }) => (chosen.value = currentTarget.value as T)}
  >
    {Object.entries<string>(options).map(([value, text]) => (
      <option key={value} value={value}>
        {text}
      </option>
    ))}
  </select>
);

/** `1 row`, `2,000 rows`. */
export const counted = (count: number, what: string): string =>
  `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;

/** Names and values; those without a value are left out. */
export const Facts = ({ facts }: { readonly facts: Readonly<Record<string, ComponentChildren>> }) => (
  <dl class="facts">
    {Object.entries(facts).map(([name, value]) =>
      value === undefined ? null : (
        <div key={name}>
          <dt>{name}</dt>
          <dd dir="auto">{value}</dd>
        </div>
      ),
    )}
  </dl>
);

interface CopyProps {
  readonly text: string;
  readonly label: string;
  readonly onCopied?: () => void;
}

/** With something to do once it is copied, it is what its dialog is about. */
export const CopyButton = ({ text, label, onCopied }: CopyProps) => {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    onCopied?.();
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <button
      type="button"
      class={onCopied === undefined ? 'small' : 'primary'}
      autofocus={onCopied !== undefined}
      onClick={() => void copy()}
      aria-live="polite"
    >
      {isCopied ? 'Copied' : label}
    </button>
  );
};

export const IdText = ({ id }: { readonly id: string }) => (
  <>
    {id} <CopyButton text={id} label="Copy" />
  </>
);

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  /** Nothing closes it yet. */
  readonly isHeld?: boolean;
  readonly children: ComponentChildren;
}

/** After a dialog the focus is where it was, or, if that is gone, on the heading of what is left. */
const restoreFocus = (opener: Element | null, around: Element | null | undefined): void => {
  if (document.activeElement !== document.body) return;
  if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
  if (document.activeElement !== document.body) return;
  const near = around?.isConnected === true ? around.querySelector<HTMLElement>('h1, h2') : null;
  const heading = near ?? document.querySelector<HTMLElement>('h1');
  heading?.setAttribute('tabindex', '-1');
  heading?.focus();
};

export const Dialog = ({ title, onClose, isHeld = false, children }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const [opener, around] = [document.activeElement, ref.current?.parentElement];
    ref.current?.showModal();
    return () => void setTimeout(() => restoreFocus(opener, around));
  }, []);
  const close = (): void => leave(() => ref.current?.close());
  /** A browser closes it all the same when Escape is pressed twice. */
  const closed = (): void => {
    if (!isHeld && !isUnsaved()) return onClose();
    ref.current?.showModal();
    if (!isHeld) close();
    return undefined;
  };
  return (
    <dialog
      ref={ref}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        if (!isHeld) close();
      }}
      onClose={closed}
    >
      <div class="head">
        <h2>{title}</h2>
        <button disabled={isHeld} onClick={close}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
};

interface FormProps<T> {
  /** Returns the answer, or why nothing was sent. */
  readonly onSend: (form: FormData, write: Write) => Promise<Result<T> | string>;
  readonly onDone?: (value: T) => void;
  readonly button: string;
  readonly kind: 'primary' | 'danger';
  readonly isReady?: boolean;
  /** Whether it has something that should not be lost. By default what has been typed. */
  readonly isChanged?: boolean | undefined;
  /** What a failure means. `isOver`: the service answers again. */
  readonly failureText?: (failed: Failed, isOver?: boolean) => string | undefined;
  readonly children: ComponentChildren;
}

/** Sends one request at a time: a double click must not create two of something. */
export const Form = <T,>(props: FormProps<T>) => {
  const { onSend, onDone, button, kind, isReady = true, failureText = writeFailure, children } = props;
  const [write] = useState(writer);
  const [isBusy, setBusy] = useState(false);
  const [isTyped, setTyped] = useState(false);
  const [failure, setFailure] = useState<Failed | string>();
  const [isOver, setOver] = useState(false);
  useUnsaved(props.isChanged ?? (isTyped && kind === 'primary'));
  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const sent = await onSend(new FormData(event.target as HTMLFormElement), write);
    setBusy(false);
    setOver(false);
    setFailure(typeof sent === 'string' || !sent.ok ? sent : undefined);
    if (typeof sent === 'string') return;
    if (sent.ok) {
      setTyped(false);
      onDone?.(sent.value);
    } else if (sent.isTransient) void answered().then(() => setOver(true));
  };
  return (
    <form onSubmit={(event) => void send(event)} onInput={() => setTyped(true)}>
      <Notice text={typeof failure === 'object' ? failureText(failure, isOver) : failure} />
      {children}
      <button type="submit" class={kind} disabled={isBusy || !isReady}>
        {button}
      </button>
    </form>
  );
};

/** Must be ticked before a change that takes access from this session itself. */
export const Agreement = ({ text }: { readonly text: string }) => (
  <label class="check agreement">
    <input type="checkbox" required />
    <span>You are signed in with {text}. Continue all the same.</span>
  </label>
);

interface NewKeyProps {
  /** Absent if it was not made, or the answer that had it was lost and the request was repeated. */
  readonly text: string | undefined;
  /** Why it was not made. */
  readonly failure?: string | undefined;
  readonly onClose: () => void;
  readonly onAgain: () => void;
}

const LOST = 'It was created, but its key was lost: make a new one. Nobody has the lost one, so revoke it.';

const LostKey = ({ failure, onClose, onAgain }: NewKeyProps) => (
  <Dialog title={failure === undefined ? 'The key was lost' : 'There is no key yet'} onClose={onClose}>
    <p>{failure === undefined ? LOST : `The Application was created, but not its key: ${failure}`}</p>
    <button class="primary" autofocus onClick={onAgain}>
      Make a new one
    </button>
  </Dialog>
);

const ShownKey = ({ text = '', onClose }: NewKeyProps) => {
  const [isKept, setKept] = useState(false);
  useUnsaved(!isKept);
  return (
    <Dialog title="The new key" onClose={onClose} isHeld={!isKept}>
      <p>Copy it now and keep it safe. It is not stored, and cannot be shown again.</p>
      <pre class="key" tabIndex={0}>
        {text}
      </pre>
      <div class="buttons">
        <CopyButton text={text} label="Copy the key" onCopied={() => setKept(true)} />
        <label class="check">
          <input
            type="checkbox"
            checked={isKept}
            onChange={({ currentTarget }) => setKept(currentTarget.checked)}
          />
          I have kept the key
        </label>
      </div>
    </Dialog>
  );
};

/** A key is shown once: it is stored nowhere. So the dialog stays until somebody has it. */
export const NewKey = (props: NewKeyProps) =>
  props.text === undefined ? <LostKey {...props} /> : <ShownKey {...props} />;
