import { buildsContract } from './builds';
import { commitsContract } from './commits';
import { differencesContract } from './differences';
import { generationsContract } from './generations';
import { leasesContract } from './leases';
import { linesContract } from './lines';
import { questionsContract } from './questions';
import { registryContract } from './registry';
import { scanningContract } from './scanning';
import { textsContract } from './texts';
import { contractWorld, type ContractStore } from './world';

/** One suite for every adapter: each promise of `src/read-models/read-models.ts` is asked for. */
export const readModelsContract = (name: string, open: () => Promise<ContractStore>): void => {
  describe(`read models in ${name}`, () => {
    const world = contractWorld(open);
    generationsContract(world);
    commitsContract(world);
    questionsContract(world);
    linesContract(world);
    textsContract(world);
    scanningContract(world);
    buildsContract(world);
    differencesContract(world);
    registryContract(world);
    leasesContract(world);
  });
};
