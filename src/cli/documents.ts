import type { Scanned, Scanner } from '../read-models/read-models';

const PAGE = 500;

/** Every document of a collection, of one tenant or of all, by tenant and key. However many there are: page by page. */
export async function* documentsOf<T>(
  reader: Scanner,
  collection: string,
  tenantId?: string,
): AsyncGenerator<T> {
  let after: { tenantId: string; key?: string } | undefined =
    tenantId === undefined ? undefined : { tenantId };
  for (;;) {
    const page: readonly Scanned[] = await reader.scan(collection, PAGE, after);
    for (const row of page) {
      if (tenantId !== undefined && row.tenantId !== tenantId) return;
      yield row.document as T;
    }
    const last = page.at(-1);
    if (last === undefined) return;
    after = { tenantId: last.tenantId, key: last.key };
  }
}

export const collectedFrom = async <T>(rows: AsyncIterable<T>): Promise<readonly T[]> => {
  const all: T[] = [];
  for await (const row of rows) all.push(row);
  return all;
};
