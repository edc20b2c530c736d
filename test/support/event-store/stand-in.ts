import { GossipService } from '@eventstore/db-client/generated/gossip_grpc_pb';
import { ClusterInfo, EndPoint, MemberInfo } from '@eventstore/db-client/generated/gossip_pb';
import { ServerFeaturesService } from '@eventstore/db-client/generated/serverfeatures_grpc_pb';
import { SupportedMethods } from '@eventstore/db-client/generated/serverfeatures_pb';
import { UUID, type Empty } from '@eventstore/db-client/generated/shared_pb';
import { StreamsService } from '@eventstore/db-client/generated/streams_grpc_pb';
import type { BatchAppendReq, BatchAppendResp, ReadReq } from '@eventstore/db-client/generated/streams_pb';
import {
  Server,
  ServerCredentials,
  status,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { openGate, type Gate } from '../gate';
import {
  answerTo,
  expectedOf,
  nameOf,
  notHandled,
  proposedOf,
  rpcError,
  strange,
  timedOut,
  tooLarge,
} from './messages';
import { readOnce, subscribe, type ReadCall, type Subscription } from './reading';
import { storedLog, type Proposed, type StoredLog } from './stored-log';

/**
 * A stand-in for EventStoreDB over real gRPC that misbehaves on command. What it imitates, and how that is known, is
 * noted at each place. Never seen on a real server: `notLeader`, gossip of a cluster, the refusal of a user, TLS, a
 * subscription that goes silent or lies, and a log that was restored from an older copy.
 */
export interface StandIn {
  readonly url: string;
  readonly port: number;
  readonly log: StoredLog;
  readonly gate: Gate;
  readonly asked: Readonly<Record<'append' | 'read', number>>;
  readonly subscriptions: ReadonlySet<Subscription>;
  readonly openReads: ReadonlySet<unknown>;
  /** The next append that has none meets this fault. */
  nextAppend(what: AppendFault): void;
  /** The next reads, this many, return everything and then fail instead of ending. */
  failReads(times: number): void;
  slowDown(stream: string, ms: number): void;
  /** Every call that requires the leader is referred to another server. */
  notLeader(leader: { readonly host: string; readonly port: number } | undefined): void;
  refuseAll(error: { readonly code: number; readonly details: string } | undefined): void;
  /** The process is gone, with its connections; the log is on disk. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export type AppendFault =
  'commit_and_cut' | 'commit_and_hang' | 'hang' | 'late' | 'cut' | 'timeout' | 'strange';

export interface StandInOptions {
  readonly log?: StoredLog;
  /** [seen] One call accepts this many bytes. */
  readonly maxAppendSize?: number;
  readonly tls?: { readonly key: Buffer; readonly certificate: Buffer };
  readonly user?: { readonly name: string; readonly password: string };
  /** It supports filters in subscriptions only. Never seen. */
  readonly readsWithoutFilters?: boolean;
  /** Called at each read of a stream, with the address of who reads it. */
  readonly onStreamRead?: (stream: string, reader: string) => void;
  /** For a cluster: what gossip reports. */
  readonly members?: () => readonly { readonly port: number; readonly isLeader: boolean }[];
}

/** [seen] An append whose ids are already in progress is not answered before this. */
const COMMIT_TIMEOUT_MS = 2_000;
const LATE_MS = 400;
const DEFAULT_MAX_APPEND = 1_048_576;

type AppendCall = ServerDuplexStream<BatchAppendReq, BatchAppendResp>;
type Answer = (answer: BatchAppendResp) => void;
type Meta = { readonly metadata: { get(name: string): readonly (string | Buffer)[] } };

export const startStandIn = async (settings: StandInOptions = {}): Promise<StandIn> => {
  const log = settings.log ?? storedLog();
  const asked = { append: 0, read: 0 };
  const subscriptions = new Set<Subscription>();
  const openReads = new Set<ReadCall>();
  const timers = new Set<NodeJS.Timeout>();
  const underWay = new Set<string>();
  const faults: AppendFault[] = [];
  let failingReads = 0;
  const slow = new Map<string, number>();
  let leader: { readonly host: string; readonly port: number } | undefined;
  let refusal: { readonly code: number; readonly details: string } | undefined;
  let server: Server;
  let inside = 0;
  const gate = await openGate(() => inside);

  const later = (ms: number, work: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      work();
    }, ms);
    timers.add(timer);
  };

  /** [source] RpcExceptions: access-denied for an unauthorised user, and for a wrong password the code of a 401. */
  const mayNot = (call: Meta) => {
    if (settings.user === undefined) return undefined;
    const { name, password } = settings.user;
    const [sent] = call.metadata.get('authorization');
    if (sent === undefined)
      return rpcError(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
    const right = `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
    return String(sent) === right ? undefined : rpcError(status.UNAUTHENTICATED, 'Unauthenticated');
  };

  /** [source] RpcExceptions.LeaderInfo, for calls that require the leader. */
  const refused = (call: Meta) => {
    if (refusal !== undefined) return rpcError(refusal.code, refusal.details);
    if (leader !== undefined && call.metadata.get('requires-leader').length > 0)
      return rpcError(status.NOT_FOUND, 'Leader info available', {
        exception: 'not-leader',
        'leader-endpoint-host': leader.host,
        'leader-endpoint-port': String(leader.port),
      });
    return mayNot(call);
  };

  const commit = (options: BatchAppendReq.Options, events: readonly Proposed[], answer: Answer): void => {
    const stream = nameOf(options.getStreamIdentifier());
    // As version 24.10 counts; 23.10 counted the data alone.
    const size = events.reduce(
      (sum, { type, data, metadata }) => sum + data.length + metadata.length + 2 * type.length,
      0,
    );
    const max = settings.maxAppendSize ?? DEFAULT_MAX_APPEND;
    if (size > max) return answer(tooLarge(max));
    const expected = expectedOf(options);
    const fault = faults.shift();
    if (fault === 'hang') return;
    if (fault === 'cut') return gate.cut();
    if (fault === 'timeout') return answer(timedOut());
    if (fault === 'strange') return answer(strange());
    const verdict = log.append(stream, expected, events);
    if (fault === 'commit_and_hang') return;
    if (fault === 'late') return later(LATE_MS, () => answer(answerTo(verdict, expected)));
    if (fault === 'commit_and_cut') return gate.cut();
    answer(answerTo(verdict, expected));
  };

  const queue = (options: BatchAppendReq.Options, events: readonly Proposed[], answer: Answer): void => {
    const stream = nameOf(options.getStreamIdentifier());
    const key = `${stream} ${events[0]?.id}`;
    if (log.ofStream(stream).some(({ id }) => id === events[0]?.id)) return commit(options, events, answer);
    if (underWay.has(key)) return later(COMMIT_TIMEOUT_MS, () => answer(timedOut()));
    underWay.add(key);
    setImmediate(() => {
      underWay.delete(key);
      commit(options, events, answer);
    });
  };

  const append = (call: AppendCall): void => {
    const parts = new Map<string, { options: BatchAppendReq.Options; events: Proposed[] }>();
    call.on('error', () => undefined);
    call.on('end', () => call.end());
    call.on('data', (request: BatchAppendReq) => {
      const error = refused(call);
      const id = request.getCorrelationId();
      const key = id?.getString() ?? '';
      const options = request.getOptions();
      const answer: Answer = (one) =>
        void call.write(one.setCorrelationId(id).setStreamIdentifier(options?.getStreamIdentifier()));
      asked.append += request.getIsFinal() ? 1 : 0;
      // [source] Not ready is a response to one append; not leader, or not allowed, ends the whole call.
      if (refusal !== undefined) return answer(notHandled(refusal.details));
      if (error !== undefined) return void call.emit('error', error);
      if (options !== undefined) parts.set(key, { options, events: [] });
      const part = parts.get(key);
      part?.events.push(...request.getProposedMessagesList().map(proposedOf));
      if (!request.getIsFinal() || part === undefined) return;
      parts.delete(key);
      queue(part.options, part.events, answer);
    });
  };

  const endRead = (call: ReadCall): void => {
    if (failingReads === 0) return void call.end();
    failingReads -= 1;
    call.emit('error', rpcError(status.UNAVAILABLE, 'The connection was lost.'));
  };

  const slowness = async (options: ReadReq.Options): Promise<void> => {
    const ms = slow.get(nameOf(options.getStream()?.getStreamIdentifier()));
    if (ms !== undefined) await new Promise<void>((resolve) => later(ms, resolve));
  };

  const read = (call: ReadCall): void => {
    asked.read += 1;
    openReads.add(call);
    for (const end of ['cancelled', 'finish', 'close', 'error']) call.on(end, () => openReads.delete(call));
    const options = call.request.getOptions();
    const isStrange = settings.readsWithoutFilters === true && options?.hasFilter() === true;
    const error =
      isStrange && !options.hasSubscription() ? rpcError(status.UNKNOWN, 'What is this?') : refused(call);
    if (error !== undefined || options === undefined) return void call.emit('error', error);
    const stream = nameOf(options.getStream()?.getStreamIdentifier());
    if (stream !== '') settings.onStreamRead?.(stream, call.getPeer());
    try {
      if (!options.hasSubscription())
        return void slowness(options)
          .then(() => readOnce(log, call, options))
          .then((isDone) => isDone && endRead(call))
          .catch((wrong: unknown) => call.emit('error', wrong));
      const subscription = subscribe(log, call, options);
      subscriptions.add(subscription);
      const forget = (): void => void subscriptions.delete(subscription);
      call.on('cancelled', forget).on('close', forget);
    } catch (wrong) {
      call.emit('error', wrong);
    }
  };

  const features = (_: unknown, answer: sendUnaryData<SupportedMethods>): void => {
    answer(
      refusal === undefined ? null : rpcError(refusal.code, refusal.details),
      new SupportedMethods().setEventStoreServerVersion('of a stand-in'),
    );
  };

  const members = settings.members ?? (() => [{ port: gate.port, isLeader: true }]);
  const gossip = (_: ServerUnaryCall<Empty, ClusterInfo>, answer: sendUnaryData<ClusterInfo>): void => {
    const list = members().map(({ port, isLeader }) =>
      new MemberInfo()
        .setInstanceId(new UUID().setString(randomUUID()))
        .setIsAlive(true)
        .setState(isLeader ? MemberInfo.VNodeState.LEADER : MemberInfo.VNodeState.FOLLOWER)
        .setHttpEndPoint(new EndPoint().setAddress('127.0.0.1').setPort(port)),
    );
    answer(null, new ClusterInfo().setMembersList(list));
  };

  const credentials = (): ServerCredentials =>
    settings.tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [
          { private_key: settings.tls.key, cert_chain: settings.tls.certificate },
        ]);

  const start = async (): Promise<void> => {
    server = new Server({ 'grpc.max_receive_message_length': 17 * 1_048_576 });
    const unmade = (call: { emit(name: 'error', error: unknown): void }): void => {
      call.emit('error', rpcError(status.UNIMPLEMENTED, 'The stand-in takes appends in a stream only.'));
    };
    server.addService(StreamsService, {
      batchAppend: append,
      read,
      append: unmade,
      delete: unmade,
      tombstone: unmade,
    });
    server.addService(ServerFeaturesService, { getSupportedMethods: features });
    server.addService(GossipService, { read: gossip });
    inside = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', credentials(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      ),
    );
  };
  await start();

  const down = (): void => {
    for (const timer of timers) clearTimeout(timer);
    timers.clear();
    underWay.clear();
    server.forceShutdown();
  };

  return {
    url: `esdb://127.0.0.1:${gate.port}?tls=${settings.tls !== undefined}`,
    port: gate.port,
    log,
    gate,
    asked,
    subscriptions,
    openReads,
    nextAppend: (what) => void faults.push(what),
    failReads: (times) => (failingReads = times),
    slowDown: (stream, ms) => void slow.set(stream, ms),
    notLeader: (other) => (leader = other),
    refuseAll: (error) => (refusal = error),
    kill: async () => {
      await gate.shut();
      down();
    },
    restart: async () => {
      await start();
      await gate.open();
    },
    stop: async () => {
      gate.thaw();
      await gate.shut();
      down();
    },
  };
};
