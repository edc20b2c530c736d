import { loadApplications, MAX_APPLICATIONS } from './all-applications.js';
import { holds } from './api.js';
import { leave } from './leaving.js';
import { useAsked, useLoaded } from './loaded.js';
import { shortId } from './names.js';
import { Alert, TableHead, Waiting } from './parts.js';
import { go, parameter, timeStyle, withParameters } from './place.js';
import { labelOf, tenantFields } from './tenant-fields.js';
import { DAY_MS, HOUR_MS, inputText, momentFrom, zoneOf } from './time.js';
import { valueText } from './words.js';
import type { Application, Tenant } from './wire.js';

const PRESETS: readonly (readonly [string, number])[] = [
  ['An hour ago', HOUR_MS],
  ['A day ago', DAY_MS],
  ['A week ago', 7 * DAY_MS],
  ['30 days ago', 30 * DAY_MS],
];

/** Which moment a page shows. The past is part of the log, and needs its permission. */
export const AsOfChoice = () => {
  const asOf = parameter('as_of');
  const choose = (moment: string | undefined): void =>
    leave(() => go(withParameters({ as_of: moment, start: undefined })));
  if (!holds('log:read')) return null;
  return (
    <div class="choices">
      <label>
        As of
        <select
          value={asOf === undefined ? '' : 'at'}
          onChange={({ currentTarget }) => {
            const { value } = currentTarget;
            currentTarget.value = asOf === undefined ? '' : 'at';
            choose(value === '' ? undefined : new Date(Date.now() - Number(value)).toISOString());
          }}
        >
          <option value="">Now</option>
          {PRESETS.map(([text, ms]) => (
            <option key={text} value={ms}>
              {text}
            </option>
          ))}
          {asOf === undefined ? null : <option value="at">A moment</option>}
        </select>
      </label>
      {asOf === undefined ? null : (
        <label>
          Moment, {zoneOf(timeStyle.value)}
          <input
            type="datetime-local"
            value={inputText(asOf, timeStyle.value)}
            onChange={({ currentTarget }) => choose(momentFrom(currentTarget.value, timeStyle.value) ?? asOf)}
          />
        </label>
      )}
    </div>
  );
};

/** The Tenant as it was, beside what it is now. */
export const TenantThen = ({ asOf, now }: { readonly asOf: string; readonly now: Tenant }) => {
  const [loaded] = useLoaded<Tenant>(`/tenants/self?as_of=${encodeURIComponent(asOf)}`);
  if (loaded?.ok !== true) return <Waiting loaded={loaded} />;
  const [then, current] = [tenantFields(loaded.value), tenantFields(now)];
  return (
    <section class="card">
      <table>
        <TableHead titles={['Field', 'Then', 'Now']} />
        <tbody>
          {Object.keys(current).map((name) => (
            <tr key={name}>
              <th scope="row">{labelOf(name)}</th>
              <td dir="auto">{valueText(then[name], name)}</td>
              <td dir="auto">
                {then[name] === current[name] ? (
                  <span class="quiet">same</span>
                ) : (
                  <ins>{valueText(current[name], name)}</ins>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
};

const keyTexts = ({ keys }: Application): readonly string[] =>
  keys.map(({ id, name }) => (name === undefined ? shortId(id) : `${name} (${shortId(id)})`));

const missing = (from: readonly string[], there: readonly string[]): string =>
  from.filter((one) => !there.includes(one)).join(', ');

/** What became of an Application since. */
const differences = (then: Application, now: Application | undefined): readonly string[] => {
  if (now === undefined) return ['deleted'];
  return [
    ['renamed to', then.name === now.name ? '' : now.name],
    ['gained', missing(now.permissions, then.permissions)],
    ['lost', missing(then.permissions, now.permissions)],
    ['keys ended:', missing(keyTexts(then), keyTexts(now))],
    ['keys added:', missing(keyTexts(now), keyTexts(then))],
  ].flatMap(([what, which]) => (which === '' ? [] : [`${what} ${which}`]));
};

const PastRow = ({ then, now }: { readonly then: Application; readonly now: Application | undefined }) => {
  const changes = differences(then, now);
  return (
    <tr>
      <th scope="row" dir="auto" title={then.id}>
        {then.name} <span class="quiet">{then.type}</span>
      </th>
      <td data-label="Permissions">
        {then.permissions.map((permission) => (
          <code key={permission}>{permission}</code>
        ))}
      </td>
      <td data-label="Keys that worked" dir="auto">
        {then.keys.length === 0 ? 'none, so it could do nothing' : keyTexts(then).join(', ')}
      </td>
      <td data-label="Since then" dir="auto">
        {changes.length === 0 ? <span class="quiet">same</span> : <ins>{changes.join('; ')}</ins>}
      </td>
    </tr>
  );
};

/** The Applications as they were: who could do what, and what differs from now. */
export const ApplicationsThen = ({ asOf }: { readonly asOf: string }) => {
  const [[then, now] = []] = useAsked(asOf, (abort) =>
    Promise.all([loadApplications(asOf, abort), loadApplications(undefined, abort)]),
  );
  if (then === undefined || now === undefined) return <p class="quiet">Loading …</p>;
  if (typeof then === 'string') return <Alert text={then} />;
  if (typeof now === 'string') return <Alert text={now} />;
  const created = now.filter(({ id }) => !then.some((one) => one.id === id)).map(({ name }) => name);
  return (
    <section class="card">
      {then.length === 0 ? (
        <p>There were none.</p>
      ) : (
        <table class="stacked" aria-label="Applications at that moment">
          <TableHead titles={['Name', 'Permissions', 'Keys that worked', 'Since then']} />
          <tbody>
            {then.map((one) => (
              <PastRow key={one.id} then={one} now={now.find(({ id }) => id === one.id)} />
            ))}
          </tbody>
        </table>
      )}
      {created.length === 0 ? null : <p dir="auto">Created since then: {created.join(', ')}.</p>}
      {then.length < MAX_APPLICATIONS ? null : <p class="quiet">Only the first of them are shown.</p>}
    </section>
  );
};
