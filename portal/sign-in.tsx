import { signIn, textOf, type Failed } from './api.js';
import { Notice, Form } from './parts.js';

const refusal = ({ problem }: Failed, isOver?: boolean): string | undefined => {
  if (problem.code === 'key_refused')
    return 'This key is not accepted: it is malformed, unknown, expired or revoked, or its Tenant is deleted.';
  return isOver === true ? undefined : textOf(problem);
};

export const SignIn = ({ reason }: { readonly reason: string | undefined }) => (
  <main class="narrow">
    <h1>Tenant Ledger</h1>
    <section class="card">
      <Notice text={reason} />
      <Form
        onSend={(form) => signIn((form.get('key') as string).trim())}
        button="Sign in"
        kind="primary"
        isChanged={false}
        failureText={refusal}
      >
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
      </Form>
      <p class="quiet">
        The key is kept in an encrypted cookie that no script can read, for at most eight hours. You see and
        can do what its Application may.
      </p>
    </section>
  </main>
);
