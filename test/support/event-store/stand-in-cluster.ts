import { startStandIn, type StandIn } from './stand-in';
import { storedLog } from './stored-log';

/** Three stand-ins on one log, one of them the leader. How long an election takes, and what it loses, is not imitated. */
export interface StandInCluster {
  readonly url: string;
  readonly members: readonly StandIn[];
  leader(): StandIn;
  /** Makes the next member the leader. The others refer to it, and the old one drops its connections. */
  elect(): void;
  stop(): Promise<void>;
}

export const startCluster = async (): Promise<StandInCluster> => {
  const log = storedLog();
  const members: StandIn[] = [];
  let leading = 0;
  const leader = (): StandIn => members[leading]!;
  const gossip = () => members.map((member) => ({ port: member.port, isLeader: member === leader() }));
  const introduce = (): void => {
    for (const member of members)
      member.notLeader(member === leader() ? undefined : { host: '127.0.0.1', port: leader().port });
  };
  for (let i = 0; i < 3; i += 1) members.push(await startStandIn({ log, members: gossip }));
  introduce();
  return {
    url: `esdb://${members.map(({ port }) => `127.0.0.1:${port}`).join()}?tls=false`,
    members,
    leader,
    elect: () => {
      const old = leader();
      leading = (leading + 1) % members.length;
      introduce();
      old.gate.cut();
    },
    stop: async () => {
      await Promise.all(members.map((member) => member.stop()));
    },
  };
};
