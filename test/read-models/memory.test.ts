import { describeReadModels } from './contract/read-models';
import { memoryReadModels, memoryStore } from './memory-read-models';

describeReadModels('memory', async () => {
  const store = memoryStore();
  return { open: async (options) => memoryReadModels({ ...options, store }), discard: async () => undefined };
});
