import { consistencyProof, inclusionProof, treeOf } from '../../../projections/evidence';
import { beforeDeadline } from '../../async/clock';
import { uuidFrom } from '../../domain/texts';
import type { TenantRevisions } from '../../event-log/event-log';
import * as note from '../../evidence/note';
import { leafHash } from '../../evidence/tree';
import { fault } from '../../fault';
import { loadTimeout } from '../../ledger/folds';
import type { ApiDependencies } from '../context';
import { wholeNumberParameter, type ValuesOf } from '../query-parameters';
import { route, type RouteRequest, type RouteResponse, type SuccessResponse } from '../route';
import { described, text, uuid } from '../schema';
import { invalid } from '../validation';
import { EVENT_ID } from './event-schemas';

const exampleKey = note.evidenceKey('the secret of the examples');
const origin = note.originOf('11111111-2222-4333-8444-555555555555');
const exampleNote = note.signedCheckpoint({ origin, size: 1, root: leafHash('{}') }, exampleKey);

const plain = (body: string): RouteResponse => ({ type: 'text/plain', body });
const isPlain = (description: string, example: string): SuccessResponse => {
  return { description, media: { 'text/plain': { schema: text, example } } };
};

/** Signed when it is asked for: nothing is stored. */
const noteOf = (
  { tenantId }: Pick<RouteRequest<undefined>, 'tenantId'>,
  { size, root }: Omit<note.Checkpoint, 'origin'>,
  { evidence }: ApiDependencies,
): string => note.signedCheckpoint({ origin: note.originOf(tenantId), size, root }, evidence);

export const getCheckpoint = route({
  method: 'get',
  path: '/tenants/self/evidence',
  summary: 'Get a checkpoint of the log',
  permission: 'log:read',
  response: isPlain('Size and root of the tree over all rows, as a signed note (C2SP).', exampleNote),
  reads: true,
  handle: async (request, dependencies) => {
    const tree = await request.read((reader) => treeOf(reader, request.tenantId));
    return plain(noteOf(request, tree, dependencies));
  },
});

export const getEventProof = route({
  method: 'get',
  path: '/events/:id/proof',
  params: { id: described(uuid, 'The id of the event.', EVENT_ID) },
  summary: 'Get the proof that an event is in the log',
  permission: 'log:read',
  response: isPlain(
    'The place of its row, hashes and a checkpoint (C2SP tlog-proof@v1).',
    note.proofText(0, [], exampleNote),
  ),
  reads: true,
  handle: async (request, dependencies) => {
    const { tenantId, params, read } = request;
    const id = uuidFrom(params['id']);
    const proof = id === undefined ? undefined : await read((reader) => inclusionProof(reader, tenantId, id));
    if (proof === undefined)
      throw fault('event_not_found', 'This Tenant has no row of an event with this id.');
    return plain(note.proofText(proof.index, proof.hashes, noteOf(request, proof, dependencies)));
  },
});

const query = { from: wholeNumberParameter('The size in an earlier checkpoint.', 0, { least: 0 }) };
type Query = ValuesOf<typeof query>;

const NOTHING: TenantRevisions = { tenant: -1, activity: -1 };

/** Why there is no proof from a size on: so many rows are not shown yet, or the log does not even have them. */
const refusal = async (
  { tenantId, read, query: { from: older } }: RouteRequest<undefined, Query>,
  { events }: ApiDependencies,
): Promise<Error> => {
  const { log, streams } = events.ledgerLog;
  const [shown, { size }] = await read(async (reader) => {
    // Read first: what is applied in the meantime then counts twice, and is not missed.
    const [known = NOTHING] = await reader.progress([tenantId]);
    return [known, await treeOf(reader, tenantId)] as const;
  });
  const head = (await log.head())?.position ?? '';
  const more = async (kind: 'tenant' | 'activity'): Promise<number> =>
    (await log.revisionAt(streams[kind](tenantId), head)) - shown[kind];
  return older <= size + (await more('tenant')) + (await more('activity'))
    ? fault('read_models_unavailable', `The read models do not show ${older} rows yet.`)
    : invalid({ from: [`must be at most ${size}: there are no more rows`] });
};

export const getConsistencyProof = route({
  method: 'get',
  path: '/tenants/self/evidence/consistency',
  summary: 'Get the proof that the log begins with an earlier one',
  permission: 'log:read',
  query,
  response: isPlain(
    'The size of the earlier log, hashes, an empty line and a checkpoint.',
    note.consistencyText(0, [], exampleNote),
  ),
  reads: true,
  handle: async (request, dependencies) => {
    const { tenantId, read, deadline } = request;
    const older = request.query.from;
    const { tree, hashes } = await read((reader) => consistencyProof(reader, tenantId, older));
    if (hashes === undefined)
      throw await beforeDeadline(refusal(request, dependencies), deadline, loadTimeout);
    return plain(note.consistencyText(older, hashes, noteOf(request, tree, dependencies)));
  },
});

export const getEvidenceKey = route({
  method: 'get',
  path: '/tenants/self/evidence/key',
  summary: 'Get the key that checkpoints are checked with',
  permission: 'log:read',
  response: isPlain(
    'The verifier key of all checkpoints of the Tenant (C2SP).',
    `${note.verifierKey(origin, exampleKey)}\n`,
  ),
  handle: async ({ tenantId }, { evidence }) =>
    plain(`${note.verifierKey(note.originOf(tenantId), evidence)}\n`),
});
