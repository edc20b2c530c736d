import { applications } from './applications';
import { logs } from './logs';
import type { Projector } from './projector';
import { tenants } from './tenants';
import { usage } from './usage';

/** Everything that is derived from the log. */
export const projections: readonly Projector[] = [tenants, applications, usage, logs];
