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

/** Which permissions an Application of a type holds, by resource and action. */
export const PermissionMatrix = ({ type, fields, onChange }: MatrixProps) => {
  const [loaded] = useLoaded<readonly Permission[]>('/permissions');
  // What was held may be given back, whoever may grant it.
  const [before] = useState(fields);
  if (loaded?.ok !== true) return <Waiting loaded={loaded} />;
  const all = loaded.value.filter(({ application_types }) => application_types.includes(type));
  const free = all
    .map((one) => one.type)
    .filter(
      (permission) =>
        isHeld(before, permission) || isHeld(fields, permission) || mayGrant(permission, loaded.value),
    );
  const partsOf = (rest: RegExp) => [...new Set(all.map((one) => one.type.replace(rest, '')))];
  const [resources, actions] = [partsOf(/:\w+$/), partsOf(/.*:/)];
  const choose = (preset: RegExp): void => {
    const chosen = free.map((permission) => [permission, preset.test(permission) ? 'held' : '']);
    onChange({ ...fields, ...Object.fromEntries(chosen) });
  };
  return (
    <fieldset>
      <legend>Permissions</legend>
      <div class="buttons">
        {Object.entries(PRESETS).map(([name, preset]) => (
          <button key={name} type="button" class="small" onClick={() => choose(preset)}>
            {name}
          </button>
        ))}
      </div>
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
