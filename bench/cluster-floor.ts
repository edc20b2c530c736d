import Koa from 'koa';
import bodyParser from 'koa-bodyparser';
import { MongoClient, type AnyBulkWriteOperation, type ClientSession } from 'mongodb';
import type { AddressInfo } from 'node:net';
import { anEvent } from '../test/support/events';
import { openLogOf } from './given-log';
import { startPrinting, type Environment, type Running } from './processes';

/**
 * What a clustered write cannot do without: Koa, an append to the event store, and one transaction for all tenants that
 * wait, with their progress, a gate, the tenants and a row each.
 */
interface Appended {
  readonly tenant: string;
  readonly revision: number;
  readonly body: unknown;
}

interface Waiting extends Appended {
  readonly shown: () => void;
  readonly failed: (error: unknown) => void;
}

/** One of the documents through which transactions notice that read models are switched. */
const GATE = 'gate';

interface Document {
  readonly _id: string;
  readonly tenant?: string;
  readonly revision?: number;
  readonly commits?: number;
  readonly body?: unknown;
}

const openReadModels = async (url: string) => {
  const client = await new MongoClient(url).connect();
  const collection = (name: string) => client.db().collection<Document>(name);
  const [progress, tenants, rows] = [collection('progress'), collection('tenants'), collection('rows')];
  for (const name of ['tenants', 'rows']) await client.db().createCollection(name);
  await progress.insertOne({ _id: GATE, commits: 0 });

  const transact = async (group: readonly Appended[], session: ClientSession): Promise<void> => {
    const ids = [GATE, ...group.map(({ tenant }) => tenant)];
    const found = await progress.find({ _id: { $in: ids } }, { session }).toArray();
    const known = new Set(found.map(({ _id }) => _id));
    const replaced = ({ tenant, body }: Appended): AnyBulkWriteOperation<Document> => ({
      replaceOne: { filter: { _id: tenant }, replacement: { body }, upsert: !known.has(tenant) },
    });
    const moved = ({ tenant, revision }: Appended): AnyBulkWriteOperation<Document> => ({
      replaceOne: { filter: { _id: tenant }, replacement: { revision }, upsert: !known.has(tenant) },
    });
    const row = ({ tenant, revision, body }: Appended): Document => ({
      _id: `${tenant}/${revision}`,
      tenant,
      revision,
      body,
    });
    await tenants.bulkWrite(group.map(replaced), { session });
    await rows.insertMany(group.map(row), { session });
    const gate = { updateOne: { filter: { _id: GATE }, update: { $inc: { commits: 1 } } } };
    await progress.bulkWrite([...group.map(moved), gate], { session });
  };
  const session = client.startSession();
  return {
    commit: (group: readonly Appended[]): Promise<void> =>
      session.withTransaction(() => transact(group, session), {
        readConcern: { level: 'snapshot' },
        writeConcern: { w: 'majority' },
      }),
  };
};

/** Commits everything that waits as one group, and meanwhile lets the next one gather. */
const groupsOf = (commit: (group: readonly Appended[]) => Promise<void>) => {
  let waiting: Waiting[] = [];
  let isCommitting = false;
  const commitAll = async (): Promise<void> => {
    if (isCommitting) return;
    isCommitting = true;
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      await commit(group).then(
        () => group.forEach(({ shown }) => shown()),
        (error: unknown) => group.forEach(({ failed }) => failed(error)),
      );
    }
    isCommitting = false;
  };
  return (appended: Appended): Promise<void> =>
    new Promise((shown, failed) => {
      waiting.push({ ...appended, shown, failed });
      void commitAll();
    });
};

const APPEND_MS = 10_000;

const serveFloor = async (place: Environment): Promise<void> => {
  const { log, streams } = await openLogOf(place);
  const { commit } = await openReadModels(place['MONGODB_URL'] ?? '');
  const show = groupsOf(commit);
  const revisions = new Map<string, number>();
  const append = async (tenant: string, body: object): Promise<number> => {
    const events = [anEvent({ body })];
    const expected = revisions.get(tenant) ?? 'no_stream';
    const { revision } = await log.append(streams.tenant(tenant), events, expected, APPEND_MS);
    revisions.set(tenant, revision);
    return revision;
  };
  const app = new Koa();
  app.use(bodyParser());
  app.use(async (ctx) => {
    const [tenant, body] = [ctx.get('SVC-API-KEY'), ctx.request.body as object];
    await show({ tenant, body, revision: await append(tenant, body) });
    ctx.body = body;
  });
  const server = app.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    console.log(`The floor serves http://127.0.0.1:${port}`);
  });
};

export const startFloor = (place: Environment): Promise<Running> =>
  startPrinting([__filename, JSON.stringify(place)]);

if (require.main === module) void serveFloor(JSON.parse(process.argv[2] ?? '{}') as Environment);
