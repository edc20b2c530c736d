import type { Reader } from '../../projections/projector';
import { singleFlight } from '../async/concurrency';
import { fault, moreOf } from '../fault';
import type { LiveSet, ParkedTenant, ReadModels, ReadModelSet } from '../read-models/read-models';

/** What a query of a tenant found. */
export interface Found<T> {
  readonly value: T;
  /** The tenant is parked: the documents stop before this event. */
  readonly parked: ParkedTenant | undefined;
}

/** What queries read. */
export type TenantReader = Reader & Pick<ReadModelSet, 'load' | 'progress'>;

/** What one process knows about the live set. */
export interface KnownLiveSet {
  /**
   * One look at the control state of the live set, shared only with requests that arrived before it was sent. Rejects
   * with `read_models_unavailable` if there is none.
   */
  look(): Promise<LiveSet>;
  /**
   * Runs a query on the live set. Control state and documents are asked for at once: of the set that was live when this
   * process looked last, and again if the look names another one.
   */
  query<T>(tenantId: string, query: (reader: TenantReader) => Promise<T>): Promise<Found<T>>;
}

const findParked = async ({ set, control }: LiveSet, tenantId: string): Promise<ParkedTenant | undefined> => {
  if (control.marks === 0) return undefined;
  const [progress] = await set.progress([tenantId]);
  return progress?.parked;
};

export const knownLiveSet = (readModels: ReadModels): KnownLiveSet => {
  let known: ReadModelSet | undefined;

  const { fresh: look } = singleFlight(async () => {
    const live = await readModels.live();
    if (live === undefined)
      throw fault('read_models_unavailable', 'The read models have not been built yet.');
    known = live.set;
    return live;
  });

  return {
    look,
    query: async (tenantId, query) => {
      const looked = look();
      const asked = known;
      const early = asked && query(asked);
      early?.catch(() => undefined); // It does not count if another set is live.
      const live = await looked.catch(async (error: unknown) => {
        const found = await early?.catch((why: unknown) => why);
        // There is no live set any more because of the damage that the query has found.
        throw moreOf(found)['isDamaged'] === true ? found : error;
      });
      const valued = early !== undefined && asked?.id === live.set.id ? early : query(live.set);
      const [value, parked] = await Promise.all([valued, findParked(live, tenantId)]);
      return { value, parked };
    },
  };
};
