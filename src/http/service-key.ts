import type { ServiceRight } from '../domain/events';
import { refusal } from '../domain/refusal';
import { fault } from '../fault';
import { digestOf, isServiceKey } from '../ledger/api-key';
import type { ApiContext, ApiDependencies } from './context';
import { headerOf } from './request';

/** Who calls with the key of a service, and what that is not for. */

type Dependencies = Pick<ApiDependencies, 'settings' | 'services'>;

const presentedOf = (ctx: ApiContext, { settings }: Dependencies) => {
  const key = headerOf(ctx, settings.headers.apiKey);
  const { at, deadline } = ctx.state;
  return key !== undefined && isServiceKey(key) ? { digest: digestOf(key), at, deadline } : undefined;
};

/** Undefined: the key is not that of a service. Others are refused unless they are valid. */
export const identifyService = async (ctx: ApiContext, dependencies: Dependencies, isRead: boolean) => {
  // The limits have just found it, for reading.
  if (isRead && ctx.state.service !== undefined) return ctx.state.service;
  const presented = presentedOf(ctx, dependencies);
  if (presented === undefined) return undefined;
  return (ctx.state.service = await dependencies.services.identify(presented, isRead));
};

/** For the limits: whether it is a service whose key is valid, as far as that is known. */
export const isKnownService = async (ctx: ApiContext, dependencies: Dependencies): Promise<boolean> => {
  const presented = presentedOf(ctx, dependencies);
  const found = presented && (await dependencies.services.find(presented));
  if (found !== undefined) ctx.state.service = found;
  return found !== undefined;
};

export const tenantOnly = () =>
  refusal('tenant_only', 'This needs the key of an Application; this is the key of a service.');

/** It is recorded for the tenant whose key it was, if it was one. */
export const serviceOnly = (right: ServiceRight) => {
  const access = { reason: 'permission_missing', permissions: [`service:${right}`] } as const;
  const remedy = `tenant-ledger service create --may ${right}`;
  return refusal('service_only', `This is for services that may do this: ${remedy}.`, {}, access);
};

export const MAX_UNDER_WAY = 4;

/** Runs the work while no more requests of a service are under way than these. */
export const placesOf = (most: number) => {
  const underWay = new Map<string, number>();
  return async <T>(serviceId: string, work: () => Promise<T>): Promise<T> => {
    const others = underWay.get(serviceId) ?? 0;
    if (others >= most)
      throw fault('service_busy', `Service ${serviceId} has ${others} requests under way on this instance.`);
    underWay.set(serviceId, others + 1);
    try {
      return await work();
    } finally {
      underWay.set(serviceId, (underWay.get(serviceId) ?? 1) - 1);
    }
  };
};
