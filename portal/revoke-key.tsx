import type { ComponentChildren } from 'preact';
import { isOwnKey } from './api.js';
import { Agreement, Form } from './parts.js';

interface RevokeProps {
  readonly applicationId: string;
  readonly id: string;
  readonly onDone: () => void;
  /** Which key it is. */
  readonly children: ComponentChildren;
}

/** Ends a key for good. */
export const RevokeForm = ({ applicationId, id, onDone, children }: RevokeProps) => (
  <Form
    onSend={(_, write) => write(`/applications/${applicationId}/keys/${id}`, { method: 'DELETE' })}
    onDone={onDone}
    button="Revoke the key"
    kind="danger"
  >
    <p>{children}</p>
    {isOwnKey(id) ? <Agreement text="this key, and your session ends with it" /> : null}
  </Form>
);
