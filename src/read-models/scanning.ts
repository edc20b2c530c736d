import type { ReadModelSet, Scanned, ScanStart } from './read-models';

const PAGE = 500;

/** The documents of a collection, of one tenant or all, ordered by tenant and key; read page by page. */
export async function* rowsOf(
  set: Pick<ReadModelSet, 'scan'>,
  collection: string,
  tenantId?: string,
): AsyncGenerator<Scanned, undefined> {
  let after: ScanStart | undefined = tenantId === undefined ? undefined : { tenantId };
  do {
    const page: readonly Scanned[] = await set.scan(collection, PAGE, after);
    for (const row of page) {
      if (tenantId !== undefined && row.tenantId !== tenantId) return;
      yield row;
    }
    after = page.at(-1);
  } while (after !== undefined);
}
