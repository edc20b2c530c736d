import { useState } from 'preact/hooks';
import { call, holds, textOf } from './api.js';
import { usesText, useUses } from './key-uses.js';
import { knownName, nameOf } from './names.js';
import { Ago } from './parts.js';
import { addressOf } from './place.js';
import { RevokeDialog } from './revoke-key.js';
import { wordsOf } from './words.js';

/** Whose key it is, by the digest of what was pasted. */
export interface FoundKey {
  readonly application_id: string;
  readonly key_id: string;
  readonly state: 'active' | 'revoked' | 'expired' | 'application_deleted';
}

const KEY = /(?<![0-9A-Za-z])key_[0-9A-Za-z]{55}(?![0-9A-Za-z])/;

export const hasKey = (text: string): boolean => KEY.test(text);

/** Finds the key in a text. Only its digest leaves the browser. Otherwise: why it is not found. */
export const findKey = async (text: string): Promise<FoundKey | string> => {
  const [key] = KEY.exec(text) ?? [];
  if (key === undefined)
    return text.includes('svc_')
      ? 'This looks like the key of a service, which is up to the operator. It was not sent.'
      : 'This looks like a part of a key. It was not sent; paste the whole one.';
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key)));
  const body = { digest: [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('') };
  const found = await call<FoundKey>('/keys/find', { method: 'POST', body });
  if (found.ok) return found.value;
  return found.problem.code === 'key_not_found' ? 'This Tenant has no such key.' : textOf(found.problem);
};

/** What it was used for in thirty days. */
const Uses = ({ path }: { readonly path: string }) => {
  const { loaded, value } = useUses({ path });
  if (value === undefined) return <>Its uses {loaded === undefined ? 'are counted …' : 'are not known.'}</>;
  const last = value[0]?.last_used_at;
  if (last === undefined) return <>It was not used in the last 30 days.</>;
  return (
    <>
      In the last 30 days: {usesText(value)}, last <Ago at={last} />.
    </>
  );
};

/** Says whose key was pasted and what it did, and offers to revoke it. */
export const FoundKeyNote = ({ found }: { readonly found: FoundKey }) => {
  const { application_id: applicationId, key_id: id } = found;
  const [state, setState] = useState(found.state);
  const [isRevoking, setRevoking] = useState(false);
  const path = `/applications/${applicationId}/keys/${id}`;
  const done = (): void => {
    setRevoking(false);
    setState('revoked');
  };
  return (
    <>
      This is the key <strong>{knownName('key', id) ?? 'without a name'}</strong> of{' '}
      <a href={addressOf('applications', { id: applicationId })}>{nameOf('application', applicationId)}</a>,{' '}
      <strong>{wordsOf(state)}</strong>. <Uses path={path} />{' '}
      {/* The log knows the Application that has changed something, not the key. */}
      <a href={addressOf('logs', { entity_type: 'key', entity_id: id })}>What it was used for</a>{' '}
      <a href={addressOf('logs', { actor_id: applicationId })}>What its Application did</a>{' '}
      {state === 'active' && holds('application:update') ? (
        <button type="button" class="small danger" onClick={() => setRevoking(true)}>
          Revoke …
        </button>
      ) : null}
      {isRevoking ? (
        <RevokeDialog {...{ applicationId, id }} onClose={() => setRevoking(false)} onDone={done}>
          This is the key that was pasted.
        </RevokeDialog>
      ) : null}
    </>
  );
};
