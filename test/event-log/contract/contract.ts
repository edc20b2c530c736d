import { appendContract } from './append';
import { closingContract } from './closing';
import { contentContract } from './content';
import { continuityContract } from './continuity';
import { copyTargetContract } from './copy-target';
import { givenLog, type Open } from './given-log';
import { headContract } from './head';
import { readAllContract } from './read-all';
import { readStreamContract } from './read-stream';
import { readTenantContract } from './read-tenant';
import { repeatedAppendContract } from './repeated-append';

/**
 * The promises of `src/event-log/event-log.ts`. Every adapter runs this suite, and nothing in it knows which one it is.
 */
export const eventLogContract = (name: string, open: Open): void => {
  describe(`the event log on ${name}`, () => {
    const given = givenLog(open);
    appendContract(given);
    repeatedAppendContract(given);
    contentContract(given);
    readStreamContract(given);
    readTenantContract(given);
    readAllContract(given);
    headContract(given);
    continuityContract(given);
    copyTargetContract(given);
    closingContract(given);
  });
};
