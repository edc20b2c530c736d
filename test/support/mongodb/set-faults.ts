import { MongoClient } from 'mongodb';
import os from 'node:os';
import { pause } from '../../../src/async/clock';
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

/** Stops or resumes replication to a secondary. Frozen by a signal, it would still find the last writes in its socket. */
export const replication = async ({ port }: Pick<Member, 'port'>, what: 'stop' | 'resume') => {
  const url = `mongodb://127.0.0.1:${port}/?directConnection=true`;
  const direct = new MongoClient(url, { runtimeAdapters: { os } });
  const admin = direct.db('admin');
  const failPoint = 'stopReplProducer';
  const mode = what === 'stop' ? 'alwaysOn' : 'off';
  const { count } = (await admin.command({ configureFailPoint: failPoint, mode })) as { count: number };
  if (what === 'stop')
    await admin.command({ waitForFailPoint: failPoint, timesEntered: count + 1, maxTimeMS: 30_000 });
  await direct.close();
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
