import { useState } from 'preact/hooks';
import { agreesToLose, call, isOwn, session, textOf, type Result } from './api.js';
import { useLoaded } from './loaded.js';
import { Alert, Form } from './parts.js';
import type { Application, ApplicationType, Permission } from './wire.js';

const TYPES: readonly ApplicationType[] = ['public', 'private', 'management'];

/** What the Application of this session holds: an Application that holds all that its type may can grant anything. */
const mayGrant = (permission: string, all: readonly Permission[]): boolean => {
  const now = session.value;
  if (now.status !== 'signed_in') return false;
  const { type, permissions } = now.application;
  const possible = all.filter(({ application_types }) => application_types.includes(type));
  return permissions.includes(permission) || possible.every((one) => permissions.includes(one.type));
};

interface ChoiceProps {
  readonly type: ApplicationType;
  readonly chosen: readonly string[];
  readonly onChosen: (permissions: readonly string[]) => void;
}

const Permissions = ({ type, chosen, onChosen }: ChoiceProps) => {
  const [loaded] = useLoaded<readonly Permission[]>('/permissions');
  if (loaded === undefined) return <p class="quiet">Loading …</p>;
  if (!loaded.ok) return <Alert text={textOf(loaded.problem)} />;
  const possible = loaded.value.filter(({ application_types }) => application_types.includes(type));
  return (
    <fieldset class="permissions">
      <legend>Permissions of a {type} Application</legend>
      {possible.map(({ type: permission, description }) => {
        const isPossible = mayGrant(permission, loaded.value) || chosen.includes(permission);
        return (
          <label key={permission} class="check">
            <input
              type="checkbox"
              checked={chosen.includes(permission)}
              disabled={!isPossible}
              onChange={({ currentTarget: { checked } }) =>
                onChosen(checked ? [...chosen, permission] : chosen.filter((one) => one !== permission))
              }
            />
            <span>
              <code>{permission}</code> {description}
              {isPossible ? '' : ' (your key does not hold it, so it cannot grant it)'}
            </span>
          </label>
        );
      })}
    </fieldset>
  );
};

interface FormProps {
  /** Undefined: a new one. */
  readonly application?: Application;
  readonly etag?: string | undefined;
  readonly onDone: (application: Application) => void;
}

const NEW = { name: '', type: 'private' as ApplicationType, permissions: [] as readonly string[] };

const send = (
  application: Application | undefined,
  etag: string | undefined,
  { name, type, permissions }: typeof NEW,
): Promise<Result<Application>> =>
  application === undefined
    ? call('/applications', { method: 'POST', body: { name, type, permissions } })
    : call(`/applications/${application.id}`, {
        method: 'PUT',
        body: { name, permissions },
        ...(etag === undefined ? {} : { headers: { 'If-Match': etag } }),
      });

/** Creates an Application, or changes one. */
export const ApplicationForm = ({ application, etag, onDone }: FormProps) => {
  const [draft, setDraft] = useState<typeof NEW>(application ?? NEW);
  const save = async (): Promise<string | undefined> => {
    const held = application !== undefined && isOwn(application) ? application.permissions : [];
    const lost = held.filter((permission) => !draft.permissions.includes(permission)).join(', ');
    if (lost !== '' && !agreesToLose(`a key of this Application, which loses ${lost}`)) return undefined;
    const saved = await send(application, etag, draft);
    if (!saved.ok) return textOf(saved.problem);
    onDone(saved.value);
    return undefined;
  };
  return (
    <Form onSend={save} button={application === undefined ? 'Create' : 'Save'} kind="primary">
      <label>
        Name
        <input
          value={draft.name}
          required
          maxLength={200}
          dir="auto"
          onInput={({ currentTarget }) => setDraft({ ...draft, name: currentTarget.value })}
        />
      </label>
      {application === undefined ? (
        <label>
          Type
          <select
            value={draft.type}
            onChange={({ currentTarget }) =>
              setDraft({ ...draft, type: currentTarget.value as ApplicationType, permissions: [] })
            }
          >
            {TYPES.map((type) => (
              <option key={type} value={type}>
                {type}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <Permissions
        type={draft.type}
        chosen={draft.permissions}
        onChosen={(permissions) => setDraft({ ...draft, permissions })}
      />
    </Form>
  );
};
