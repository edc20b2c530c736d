import { applications } from './applications';
import type { Projector } from './projector';
import { logs } from './logs';
import { tenants } from './tenants';
import { usage } from './usage';

/** Everything that is derived from the log. */
export const projections: readonly Projector[] = [tenants, applications, usage, logs];
