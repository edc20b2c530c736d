import { isPausedByHand, resumeTail, tailState, type TailState } from './log-rows.js';

const TEXTS = { off: 'Not following', live: 'Live', paused: 'Paused', reconnecting: 'Reconnecting …' };

const textOf = (state: TailState): string =>
  state.kind === 'paused' && state.count > 0
    ? `Paused, ${state.count.toLocaleString('en')}${state.isMore ? ' or more' : ''} new`
    : TEXTS[state.kind];

/** What the tail is doing, in words, and the button that changes it. */
export const TailControl = ({ onResume }: { readonly onResume: () => void }) => {
  const state = tailState.value;
  const resume = (): void => {
    onResume();
    resumeTail();
  };
  return (
    <div class="buttons">
      <span class={`state ${state.kind === 'live' ? 'good' : 'warn'}`} role="status">
        <span class="dot" aria-hidden="true" />
        {textOf(state)}
      </span>
      {state.kind === 'live' ? (
        <button type="button" onClick={() => (isPausedByHand.value = true)}>
          Pause
        </button>
      ) : null}
      {state.kind === 'paused' ? (
        <button type="button" class="primary" onClick={resume}>
          {state.count === 0 ? 'Go live' : 'Show new'}
        </button>
      ) : null}
    </div>
  );
};
