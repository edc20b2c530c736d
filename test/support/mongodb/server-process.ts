import { startMongoServer, type MongoServer } from './server';
import type { FaultRule } from './faults';

/** The stand-in in its own process: does what its parent asks, and exits with it. */
export type Order =
  | {
      readonly do:
        'leave' | 'freeze' | 'thaw' | 'stepDown' | 'stepUp' | 'rollBack' | 'cutConnections' | 'clearFaults';
    }
  | { readonly do: 'comeBack'; readonly withData: boolean }
  | { readonly do: 'fault'; readonly rule: FaultRule }
  | { readonly do: 'roundTrips' }
  | { readonly do: 'resetRoundTrips' };

const execute = async (server: MongoServer, order: Order): Promise<unknown> => {
  switch (order.do) {
    case 'comeBack':
      return server.comeBack(order);
    case 'fault':
      return void server.faults.add(order.rule);
    case 'clearFaults':
      return server.faults.clear();
    case 'roundTrips':
      return server.roundTrips.table();
    case 'resetRoundTrips':
      return server.roundTrips.reset();
    case 'leave':
    case 'freeze':
    case 'thaw':
    case 'stepDown':
    case 'stepUp':
    case 'rollBack':
    case 'cutConnections':
      return server[order.do]();
  }
};

const run = async (): Promise<void> => {
  const server = await startMongoServer();
  process.on('message', ({ id, order }: { id: number; order: Order }) => {
    void execute(server, order).then((result) => process.send?.({ id, result }));
  });
  process.on('disconnect', () => process.exit());
  process.send?.({ url: server.url });
};

if (require.main === module) void run();
