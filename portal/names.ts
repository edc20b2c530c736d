import { effect, signal } from '@preact/signals';
import { loadApplications } from './all-applications.js';
import { holds, session, tenantName, type Result } from './api.js';
import type { Application, LedgerEvent, Log } from './wire.js';

/** The names of Applications and keys by id, so that people need not read UUIDs. */
const names = signal<ReadonlyMap<string, string>>(new Map());
/** The Application of each key. */
const owners = new Map<string, string>();
/** The Applications that there are, for choosing one. */
export const applicationNames = signal<readonly (readonly [string, string])[]>([]);
let asked: ReturnType<typeof loadNamed> | undefined;

export const OPERATOR = '00000000-0000-0000-0000-000000000000';

type Name = readonly [id: string, name: string | undefined];

const learn = (found: readonly Name[], isNewest: boolean): void => {
  const fresh = found.flatMap(([id, name = '']) =>
    name === '' || id === '' || (!isNewest && names.value.has(id)) ? [] : [[id, name] as const],
  );
  if (fresh.length > 0) names.value = new Map([...names.value, ...fresh]);
};

/** What an event says about names. An Application that was deleted still had one. */
const namesIn = ({ type, data, actor, changes = [] }: LedgerEvent): readonly Name[] => {
  const { applicationId = '', keyId = '', name } = data;
  if (keyId !== '') owners.set(keyId, applicationId);
  const of = type === 'KeyAdded' ? keyId : /^Application(?:Created|Updated)$/.test(type) ? applicationId : '';
  const former = changes.find(({ field }) => field === 'name')?.from;
  const deleted = type === 'ApplicationDeleted' && typeof former === 'string' ? former : undefined;
  return [
    [of, name],
    [applicationId, deleted],
    [actor?.id ?? '', actor?.name],
  ];
};

/** Names that are known already are newer. */
export const learnNames = (events: readonly LedgerEvent[]): void => learn(events.flatMap(namesIn), false);

/** What they are called now, and their keys. */
export const learnApplications = (found: readonly Application[]): void => {
  for (const { id, keys } of found) for (const key of keys) owners.set(key.id, id);
  learn(
    found.flatMap(({ id, name, keys }) => [[id, name], ...keys.map((key): Name => [key.id, key.name])]),
    true,
  );
};

/** Loads all Applications, for their names, too. */
export const loadNamed = async (abort?: AbortSignal): Promise<Result<readonly Application[]>> => {
  const all = await loadApplications(abort);
  if (all.ok && session.value.status === 'signed_in') {
    applicationNames.value = all.value.map(({ id, name }) => [id, name]);
    learnApplications(all.value);
  }
  return all;
};

/** Asks for them once: later names come with the rows, and with what is changed here. */
export const askForApplications = async (): Promise<void> => {
  if (!holds('application:read')) return;
  asked ??= loadNamed();
  if (!(await asked).ok) asked = undefined;
};

const SHORT = 8;
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const shortId = (id: string): string => (UUID.test(id) ? `${id.slice(0, SHORT)}…` : id);

/** A name if one is known. */
export const knownName = (type: string, id: string): string | undefined => {
  if (type === 'user') return id === OPERATOR ? 'operator' : undefined;
  if (type === 'tenant') return tenantName.value;
  return names.value.get(id);
};

/** A name, `key of Worker 59`, or the beginning of the id. */
export const nameOf = (type: string, id: string): string => {
  const known = knownName(type, id);
  const owner = known === undefined && type === 'key' ? owners.get(id) : undefined;
  if (owner !== undefined && owner !== '') return `key of ${nameOf('application', owner)}`;
  return known ?? shortId(id);
};

/** What the actor of a row was called then, or is called now. */
export const actorOf = ({ actor_id = '', actor_type = '', actor_name }: Log): string =>
  actor_name ?? nameOf(actor_type, actor_id);

effect(() => {
  if (session.value.status !== 'signed_out') return;
  [asked, names.value, applicationNames.value] = [undefined, new Map(), []];
  owners.clear();
});
