import { useState } from 'preact/hooks';
import { signIn } from './api.js';
import { Alert } from './parts.js';

export const SignIn = ({ reason }: { readonly reason: string | undefined }) => {
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const key = new FormData(form).get('key');
    setBusy(true);
    setFailure(await signIn(typeof key === 'string' ? key.trim() : ''));
    setBusy(false);
  };
  return (
    <main class="narrow">
      <h1>Tenant Ledger</h1>
      <form onSubmit={(event) => void submit(event)} class="card" autocomplete="off">
        <Alert text={failure ?? reason} />
        <label>
          API key
          <input
            name="key"
            type="password"
            required
            autofocus
            autocomplete="off"
            spellcheck={false}
            placeholder="key_…"
          />
        </label>
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
        <p class="quiet">
          The key is kept in an encrypted cookie that no script can read, for at most eight hours. You see and
          can do what its Application may.
        </p>
      </form>
    </main>
  );
};
