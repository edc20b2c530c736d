import type { MongoClient } from 'mongodb';
import { pause } from '../../../src/async/clock';
import { mongoConnection } from '../../../src/mongodb/connection';
import type { Member, ReplicaSet } from './replica-set';

/** States of members, as MongoDB numbers them. */
const [PRIMARY, SECONDARY] = [1, 2];

export const membersOf = (client: MongoClient, { members: all }: ReplicaSet) => {
  const primaryPort = async (): Promise<number> => {
    for (;;) {
      const hello = await client
        .db('admin')
        .command({ hello: 1 })
        .catch(() => undefined);
      const port = Number(String(hello?.['primary'] ?? '').split(':')[1]);
      if (port > 0) return port;
      await pause(100);
    }
  };
  const primary = async (): Promise<Member> => {
    const port = await primaryPort();
    return all.find((member) => member.port === port)!;
  };
  const secondaries = async (): Promise<readonly Member[]> => {
    const port = await primaryPort();
    return all.filter((member) => member.port !== port);
  };
  /** Until no member is starting, recovering or rolling back. */
  const areHealthy = async (): Promise<void> => {
    for (;;) {
      const status = await client
        .db('admin')
        .command({ replSetGetStatus: 1 })
        .catch(() => undefined);
      const states = ((status?.['members'] ?? []) as readonly { readonly state: number }[]).map(
        ({ state }) => state,
      );
      if (states.length > 0 && states.every((state) => state === PRIMARY || state === SECONDARY)) return;
      await pause(100);
    }
  };
  return { all, primary, secondaries, areHealthy };
};

/** Stops replication to a secondary, or resumes it. Frozen by a signal, it would still find the last writes in its socket. */
export const replication = async ({ port }: Pick<Member, 'port'>, mode: 'stop' | 'resume'): Promise<void> => {
  const url = `mongodb://127.0.0.1:${port}/admin?directConnection=true`;
  const { db, close } = await mongoConnection(url, { waitMs: 10_000, onError: () => undefined });
  const failPoint = 'stopReplProducer';
  const command = { configureFailPoint: failPoint, mode: mode === 'stop' ? 'alwaysOn' : 'off' };
  const { count } = (await db.command(command)) as { count: number };
  if (mode === 'stop')
    await db.command({ waitForFailPoint: failPoint, timesEntered: count + 1, maxTimeMS: 30_000 });
  await close();
};

/** Returns how to end the fault, once the instances have recovered from it. */
export type Fault = readonly [name: string, happen: () => Promise<() => unknown>];

export const faultsOf = (client: MongoClient, set: ReplicaSet): readonly Fault[] => {
  const { all, primary, secondaries } = membersOf(client, set);
  return [
    [
      'primary killed',
      async () => {
        const killed = await primary();
        await killed.kill();
        return killed.restart;
      },
    ],
    [
      'primary frozen',
      async () => {
        const { pid } = await primary();
        process.kill(pid, 'SIGSTOP');
        return () => process.kill(pid, 'SIGCONT');
      },
    ],
    [
      'primary stepped down',
      async () => {
        await client
          .db('admin')
          .command({ replSetStepDown: 10, force: true })
          .catch(() => undefined);
        return () => undefined;
      },
    ],
    [
      'primary killed with writes that no majority had, which are rolled back',
      async () => {
        const [killed, others] = [await primary(), await secondaries()];
        for (const member of others) await replication(member, 'stop');
        await pause(500);
        await killed.kill();
        for (const member of others) await replication(member, 'resume');
        return killed.restart;
      },
    ],
    [
      'all members killed and started again',
      async () => {
        await Promise.all(all.map((member) => member.kill()));
        await Promise.all(all.map((member) => member.restart()));
        return () => undefined;
      },
    ],
  ];
};
