import { tailState, type TailState } from './log-rows.js';

const TEXTS = { off: 'Not following', live: 'Live', paused: 'Paused', reconnecting: 'Reconnecting …' };

const textOf = (state: TailState): string =>
  state.kind === 'paused' && state.count > 0
    ? `Paused, ${state.count.toLocaleString('en')}${state.isMore ? ' or more' : ''} new`
    : TEXTS[state.kind];

/** What the tail is doing, in words, and the button that changes it. */
export const TailControl = ({ onResume }: { readonly onResume: () => void }) => {
  const state = tailState.value;
  return (
    <div class="buttons">
      <span class={`state ${state.kind === 'live' ? 'good' : 'warn'}`} role="status">
        {textOf(state)}
      </span>
      {state.kind === 'paused' ? (
        <button type="button" class="primary" onClick={onResume}>
          {state.count === 0 ? 'Go live' : 'Show new'}
        </button>
      ) : null}
    </div>
  );
};
