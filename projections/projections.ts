import { applications } from './applications';
import type { Projector } from './projector';
import { tenants } from './tenants';

/** Everything that is derived from the log. */
export const projections: readonly Projector[] = [tenants, applications];
