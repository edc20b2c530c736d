import { randomUUID } from 'node:crypto';
import { applicationTypes, permissions, type ApplicationType } from '../../src/domain/permissions';
import type { NewEvent } from '../../src/event-log/event-log';
import { newKey } from '../../src/ledger/api-key';
import { anEvent } from './events';
import { readingsOf } from './readings';

/** A tenant with an Application of every type for every permission: each alone, all of them, and none. */
export interface IsolatedTenant {
  readonly id: string;
  readonly callers: readonly IsolatedCaller[];
}

export interface IsolatedCaller {
  readonly applicationId: string;
  readonly type: ApplicationType;
  readonly held: readonly string[];
  readonly keys: Readonly<
    Record<'valid' | 'revoked' | 'expired', { readonly key: string; readonly id: string }>
  >;
}

const ALL = permissions.map(({ type }) => type);
const SETS: readonly (readonly string[])[] = [[], ...ALL.map((permission) => [permission]), ALL];

const event = (type: string, data: NewEvent['data']): NewEvent => anEvent(data, { type });

const applicationOf = (tenantId: string, type: ApplicationType, held: readonly string[]) => {
  const applicationId = randomUUID();
  const made = { valid: newKey(tenantId), revoked: newKey(tenantId), expired: newKey(tenantId) };
  const added = Object.entries(made).map(([state, { input }]) =>
    event('KeyAdded', {
      keyId: input.keyId,
      applicationId,
      digest: input.digest,
      ...(state === 'expired' ? { expiresAt: '2021-01-01T00:00:00.000Z' } : {}),
    }),
  );
  const data = { applicationId, name: `${type} ${held.length}`, applicationType: type, permissions: held };
  const keys = Object.fromEntries(
    Object.entries(made).map(([state, { key, input }]) => [state, { key, id: input.keyId }]),
  ) as IsolatedCaller['keys'];
  return {
    caller: { applicationId, type, held, keys },
    events: [
      event('ApplicationCreated', data),
      ...added,
      event('KeyRevoked', { keyId: made.revoked.input.keyId, applicationId }),
    ],
  };
};

/** Written to the log directly: no command would grant a type a permission that it may not hold. */
export const isolatedTenants = async (folder: string): Promise<() => Promise<IsolatedTenant>> => {
  const { app, newTenant } = await readingsOf(folder);
  return async () => {
    const id = await newTenant();
    const made = applicationTypes.flatMap((type) => SETS.map((held) => applicationOf(id, type, held)));
    const events = made.flatMap((application) => application.events);
    const { position } = await app.log.append(app.streams.tenant(id), events, 0, 10_000);
    await app.catchUp(position, 20_000);
    return { id, callers: made.map(({ caller }) => caller) };
  };
};
