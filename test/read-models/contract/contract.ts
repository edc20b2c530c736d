import { buildsContract } from './builds';
import { commitsContract } from './commits';
import { differencesContract } from './differences';
import { generationsContract } from './generations';
import { leasesContract } from './leases';
import { numbersContract } from './numbers';
import { questionsContract } from './queries';
import { registryContract } from './registry';
import { scanningContract } from './scanning';
import { textsContract } from './texts';
import { contractHarness, type ContractStore } from './harness';

/** One suite for every adapter, covering each promise of `src/read-models/read-models.ts`. */
export const readModelsContract = (name: string, open: () => Promise<ContractStore>): void => {
  describe(`read models in ${name}`, () => {
    const harness = contractHarness(open);
    generationsContract(harness);
    commitsContract(harness);
    questionsContract(harness);
    numbersContract(harness);
    textsContract(harness);
    scanningContract(harness);
    buildsContract(harness);
    differencesContract(harness);
    registryContract(harness);
    leasesContract(harness);
  });
};
