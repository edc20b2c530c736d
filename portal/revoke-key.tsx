import type { ComponentChildren } from 'preact';
import { isOwnKey } from './api.js';
import { Agreement, Dialog, Form } from './parts.js';

interface RevokeProps {
  readonly applicationId: string;
  readonly id: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
  /** Which key it is. */
  readonly children: ComponentChildren;
}

/** Ends a key for good. */
export const RevokeDialog = ({ applicationId, id, onClose, onDone, children }: RevokeProps) => (
  <Dialog title="Revoke the key" onClose={onClose}>
    <Form
      onSend={(_, write) => write(`/applications/${applicationId}/keys/${id}`, { method: 'DELETE' })}
      onDone={onDone}
      button="Revoke the key"
      kind="danger"
    >
      <p>{children} It is refused from now on, for good.</p>
      {isOwnKey(id) ? <Agreement text="this key, and your session ends with it" /> : null}
    </Form>
  </Dialog>
);
