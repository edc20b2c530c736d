import { effect, signal } from '@preact/signals';
import { loadApplications } from './all-applications.js';
import { call, holds, session, tenantName } from './api.js';
import type { LedgerEvent, Log, LogPage, Source } from './wire.js';

/** The names of Applications and keys by id, so that people need not read UUIDs. */
const names = signal<ReadonlyMap<string, string>>(new Map());
/** The Applications that there are, for choosing one. */
export const applicationNames = signal<readonly (readonly [string, string])[]>([]);
let isAsked = false;
const lookedUp = new Set<string>();

const MAX_LOOK_UPS = 50;
export const OPERATOR = '00000000-0000-0000-0000-000000000000';

const add = (found: Iterable<readonly [string, string]>): void => {
  names.value = new Map([...names.value, ...found]);
};

/** What an event says about names. An Application that was deleted still had one. */
const namesIn = ({ type, data, changes = [] }: LedgerEvent): readonly (readonly [string, string])[] => {
  const { applicationId = '', keyId = '', name } = data;
  if (type === 'KeyAdded') return name === undefined ? [] : [[keyId, name]];
  if (type === 'ApplicationCreated' || type === 'ApplicationUpdated') return [[applicationId, name ?? '']];
  const former = changes.find(({ field }) => field === 'name')?.from;
  return type === 'ApplicationDeleted' && typeof former === 'string' ? [[applicationId, former]] : [];
};

/** Names that are known already are newer. */
export const learnNames = (events: readonly LedgerEvent[]): void => {
  const found = events.flatMap(namesIn).filter(([id]) => !names.value.has(id));
  if (found.length > 0) add(found);
};

const loadNames = async (): Promise<void> => {
  const all = await loadApplications();
  if (typeof all === 'string') return;
  applicationNames.value = all.map(({ id, name }) => [id, name]);
  const keys = all.flatMap((application) => application.keys);
  add([
    ...applicationNames.value,
    ...keys.flatMap(({ id, name = '' }) => (name === '' ? [] : [[id, name] as const])),
  ]);
};

/** Of what is gone the log knows the name: that of an Application last, that of a key when it was added. */
const lookUp = async (type: string, id: string): Promise<void> => {
  const query = new URLSearchParams({ entity_type: type, entity_id: id, size: '1' }).toString();
  let page = await call<LogPage>(`/logs?${query}`);
  if (type === 'key' && page.ok && page.value.data.length > 0)
    page = await call<LogPage>(`/logs?${query}&page=${page.value.pagination.total_items}`);
  const row = page.ok ? page.value.data[0] : undefined;
  const event = row === undefined ? undefined : await call<LedgerEvent>(`/events/${row.id}`);
  if (event?.ok === true) learnNames([event.value]);
};

let asking: Promise<void> = Promise.resolve();

/** Once, one after the other, and not for all of a long list. */
const ask = (type: string, id: string): void => {
  if (!isAsked && holds('application:read')) {
    isAsked = true;
    asking = loadNames();
  }
  if (lookedUp.has(id) || lookedUp.size >= MAX_LOOK_UPS || !holds('log:read')) return;
  lookedUp.add(id);
  asking = asking.then(async () => {
    if (!names.value.has(id)) await lookUp(type, id);
  });
};

const SHORT = 8;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-/;

export const shortId = (id: string): string => (UUID.test(id) ? `${id.slice(0, SHORT)}…` : id);

/** A name, or the beginning of the id. */
export const nameOf = (type: string, id: string): string => {
  if (type === 'user') return id === OPERATOR ? 'operator' : shortId(id);
  const name = type === 'tenant' ? tenantName.value : names.value.get(id);
  if (name === undefined && id !== '' && (type === 'application' || type === 'key')) ask(type, id);
  return name ?? shortId(id);
};

/** What the actor of a row was called then, or is called now. */
export const actorOf = ({ actor_id = '', actor_type = '', actor_name }: Log): string =>
  actor_name ?? nameOf(actor_type, actor_id);

/** Who says so. */
export const sourceNames: Readonly<Record<Source, string>> = {
  decision: 'decided',
  access: 'key use',
  fact: 'reported',
};

export const forgetNames = (): void => {
  [isAsked, names.value, applicationNames.value] = [false, new Map(), []];
  lookedUp.clear();
};

effect(() => {
  if (session.value.status === 'signed_out') forgetNames();
});
