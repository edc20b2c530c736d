import { useState } from 'preact/hooks';
import { session } from './api.js';
import type { Fields } from './editing.js';
import { useLoaded } from './loaded.js';
import { TableHead, Waiting } from './parts.js';
import { titleOf, wordsOf } from './words.js';
import type { ApplicationType, Permission } from './wire.js';

/** What the Application of this session holds: an Application that holds all that its type may can grant anything. */
const mayGrant = (permission: string, all: readonly Permission[]): boolean => {
  const now = session.value;
  if (now.status !== 'signed_in') return false;
  const { type, permissions } = now.application;
  const possible = all.filter(({ application_types }) => application_types.includes(type));
  return permissions.includes(permission) || possible.every((one) => permissions.includes(one.type));
};

const isHeld = (fields: Fields, permission: string): boolean => fields[permission] === 'held';

interface CellProps {
  readonly permission: Permission | undefined;
  readonly isFree: boolean;
  readonly fields: Fields;
  readonly onChange: (fields: Fields) => void;
}

const Cell = ({ permission, isFree, fields, onChange }: CellProps) => {
  if (permission === undefined) return null;
  if (!isFree) return <span class="quiet">no</span>;
  const { type, description } = permission;
  return (
    <label title={description}>
      <input
        type="checkbox"
        aria-label={`${type}: ${description}`}
        checked={isHeld(fields, type)}
        onChange={({ currentTarget: { checked } }) => onChange({ ...fields, [type]: checked ? 'held' : '' })}
      />
    </label>
  );
};

interface MatrixProps extends Omit<CellProps, 'permission' | 'isFree'> {
  readonly type: ApplicationType;
}

const PRESETS = { None: /^$/, 'Reading only': /:(?:read|search)$/, All: /./ };

interface PresetsProps {
  readonly free: readonly string[];
  readonly onChoose: (fields: Fields) => void;
}

const Presets = ({ free, onChoose }: PresetsProps) => (
  <div class="buttons">
    {Object.entries(PRESETS).map(([name, preset]) => (
      <button
        key={name}
        type="button"
        class="small"
        onClick={({ currentTarget }) => {
          onChoose(Object.fromEntries(free.map((one) => [one, preset.test(one) ? 'held' : ''])));
          // For the form it is as if somebody had typed it.
          currentTarget.dispatchEvent(new Event('input', { bubbles: true }));
        }}
      >
        {name}
      </button>
    ))}
  </div>
);

/** Which permissions an Application of a type holds, by resource and action. */
export const PermissionMatrix = ({ type, fields, onChange }: MatrixProps) => {
  const { loaded, value } = useLoaded<readonly Permission[]>('/permissions');
  // What was held may be given back, whoever may grant it.
  const [before] = useState(fields);
  if (value === undefined) return <Waiting loaded={loaded} />;
  const all = value.filter(({ application_types }) => application_types.includes(type));
  const free = all
    .map((one) => one.type)
    .filter(
      (permission) => isHeld(before, permission) || isHeld(fields, permission) || mayGrant(permission, value),
    );
  const partsOf = (rest: RegExp) => [...new Set(all.map((one) => one.type.replace(rest, '')))];
  const [resources, actions] = [partsOf(/:\w+$/), partsOf(/.*:/)];
  return (
    <fieldset>
      <legend>Permissions</legend>
      <Presets free={free} onChoose={(chosen) => onChange({ ...fields, ...chosen })} />
      <table class="matrix">
        <TableHead titles={['', ...actions.map(wordsOf)]} />
        <tbody>
          {resources.map((resource) => (
            <tr key={resource}>
              <th scope="row">{titleOf(resource.replace(':', ' '))}</th>
              {actions.map((action) => {
                const permission = all.find((one) => one.type === `${resource}:${action}`);
                const isFree = free.includes(permission?.type ?? '');
                return (
                  <td key={action}>
                    <Cell {...{ permission, isFree, fields, onChange }} />
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {free.length === all.length ? null : (
        <p class="quiet">no: your key does not hold it, so it cannot grant it.</p>
      )}
    </fieldset>
  );
};
