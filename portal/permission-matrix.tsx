import { session } from './api.js';
import type { Fields } from './editing.js';
import { useLoaded } from './loaded.js';
import { Waiting } from './parts.js';
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

interface MatrixProps {
  readonly type: ApplicationType;
  readonly fields: Fields;
  readonly onChange: (fields: Fields) => void;
}

const PRESETS = { None: /^$/, 'Reading only': /:(?:read|search)$/, All: /./ };

/** Which permissions an Application of a type holds, by resource and action. */
export const PermissionMatrix = ({ type, fields, onChange }: MatrixProps) => {
  const [loaded] = useLoaded<readonly Permission[]>('/permissions');
  if (loaded?.ok !== true) return <Waiting loaded={loaded} />;
  const possible = loaded.value.filter(({ application_types }) => application_types.includes(type));
  const isHeld = (permission: string): boolean => fields[permission] === 'held';
  const isFree = (permission: string): boolean => isHeld(permission) || mayGrant(permission, loaded.value);
  const partsOf = (part: RegExp): readonly string[] => [
    ...new Set(possible.map((one) => one.type.replace(part, ''))),
  ];
  const [resources, actions] = [partsOf(/:\w+$/), partsOf(/.*:/)];
  const choose = (preset: RegExp): void => {
    const free = possible.map((one) => one.type).filter(isFree);
    const chosen = free.map((permission) => [permission, preset.test(permission) ? 'held' : '']);
    onChange({ ...fields, ...Object.fromEntries(chosen) });
  };
  const cell = (found: Permission | undefined) => {
    if (found === undefined) return null;
    const { type: permission, description } = found;
    if (!isFree(permission)) return <span class="quiet">no</span>;
    const change = (checked: boolean): void => onChange({ ...fields, [permission]: checked ? 'held' : '' });
    return (
      <label title={description}>
        <input
          type="checkbox"
          aria-label={`${permission}: ${description}`}
          checked={isHeld(permission)}
          onChange={({ currentTarget }) => change(currentTarget.checked)}
        />
      </label>
    );
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
        <thead>
          <tr>
            <td />
            {actions.map((action) => (
              <th key={action} scope="col">
                {wordsOf(action)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {resources.map((resource) => (
            <tr key={resource}>
              <th scope="row">{titleOf(resource.replace(':', ' '))}</th>
              {actions.map((action) => (
                <td key={action}>{cell(possible.find((one) => one.type === `${resource}:${action}`))}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {possible.every((one) => isFree(one.type)) ? null : (
        <p class="quiet">no: your key does not hold it, so it cannot grant it.</p>
      )}
    </fieldset>
  );
};
