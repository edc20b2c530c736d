import { projections } from '../../../projections/projections';
import type { Projector } from '../../../projections/projector';
import { fault } from '../../fault';

/** The projections with these names, or all if none is given. */
export const chosenProjectors = (names: readonly string[]): readonly Projector[] => {
  const unknown = names.find((name) => !projections.some((projector) => projector.name === name));
  if (unknown !== undefined)
    throw fault(
      'projection_unknown',
      `There is no projection ${unknown}. There are: ${projections.map(({ name }) => name).join(', ')}.`,
    );
  return names.length === 0 ? projections : projections.filter(({ name }) => names.includes(name));
};
