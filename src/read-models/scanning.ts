import type { Scanned, ScanStart, Scanner } from './read-models';

const PAGE = 500;

/** All documents of a collection, of one tenant or all, ordered by tenant and key; read page by page. */
export async function* documentsOf<T>(
  scanner: Scanner,
  collection: string,
  tenantId?: string,
): AsyncGenerator<T, undefined> {
  let after: ScanStart | undefined = tenantId === undefined ? undefined : { tenantId };
  do {
    const page: readonly Scanned[] = await scanner.scan(collection, PAGE, after);
    for (const row of page) {
      if (tenantId !== undefined && row.tenantId !== tenantId) return;
      yield row.document as T;
    }
    after = page.at(-1);
  } while (after !== undefined);
}
