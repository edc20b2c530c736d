import { fork } from 'node:child_process';
import { once } from 'node:events';
import { findMongod } from './mongod';
import { startReplicaSet, type Member } from './replica-set';

/** A replica set of three for one test: whoever forked it may freeze and kill its members. */
export interface SetOfThree {
  readonly url: string;
  readonly members: readonly Pick<Member, 'port' | 'pid'>[];
  close(): Promise<void>;
}

/** Long enough that a test can look at a primary that has lost its secondaries. */
const ELECTION_MS = 5_000;

/** In a process of its own, because it cannot be started in Jest. */
export const startSetOfThree = async (): Promise<SetOfThree> => {
  const child = fork(__filename, { execArgv: [] });
  const failed = once(child, 'exit').then(() => Promise.reject(new Error('The set could not be started.')));
  const [started] = (await Promise.race([once(child, 'message'), failed])) as [Omit<SetOfThree, 'close'>];
  failed.catch(() => undefined);
  return {
    ...started,
    close: async () => {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
};

const run = async (): Promise<void> => {
  const set = await startReplicaSet((await findMongod())!, 3, ELECTION_MS);
  process.on('disconnect', () => void set.close().then(() => process.exit()));
  process.send?.({ url: set.url, members: set.members.map(({ port, pid }) => ({ port, pid })) });
};

if (require.main === module) void run();
