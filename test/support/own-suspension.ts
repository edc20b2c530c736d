import { setEnvironmentData } from 'node:worker_threads';

/** Imported first, so that whatever other tests have left open in this process does not count. */
setEnvironmentData('tenant-ledger suspension', undefined);
