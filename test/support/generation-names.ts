import { projections } from '../../projections/projections';

/** The first generation of a projection, in the version that the program carries. */
export const firstGeneration = (projection: string): string => {
  const version = projections.find(({ name }) => name === projection)?.version;
  return `${projection}_v${version}_1`;
};
