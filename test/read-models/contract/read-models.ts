import { describeAdvance } from './advance';
import { describeNumbers } from './numbers';
import { describeParking } from './parking';
import { describeQueries } from './queries';
import { describeRanges } from './ranges';
import { describeRemoval } from './removal';
import { describeScanning } from './scanning';
import { harnessOf, type NewStorage } from './storage';
import { describeSwitching } from './switching';
import { describeTexts } from './texts';

/** One suite for every adapter, with a test for each promise of `src/read-models/read-models.ts`. */
export const describeReadModels = (name: string, newStorage: NewStorage): void => {
  describe(`read models in ${name}`, () => {
    const harness = harnessOf(newStorage);
    describeSwitching(harness);
    describeAdvance(harness);
    describeParking(harness);
    describeQueries(harness);
    describeRanges(harness);
    describeNumbers(harness);
    describeTexts(harness);
    describeScanning(harness);
    describeRemoval(harness);
  });
};
