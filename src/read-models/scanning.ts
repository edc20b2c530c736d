import type { Scanned, Scanner } from './read-models';

const PAGE = 500;

/** All documents of a collection, of one tenant or all, ordered by tenant and key; read page by page. */
export async function* scanAll(
  scanner: Scanner,
  collection: string,
  tenantId?: string,
): AsyncGenerator<Scanned, undefined> {
  let after: Parameters<Scanner['scan']>[2] = tenantId === undefined ? undefined : { tenantId };
  do {
    const page: readonly Scanned[] = await scanner.scan(collection, PAGE, after);
    for (const row of page) {
      if (tenantId !== undefined && row.tenantId !== tenantId) return;
      yield row;
    }
    after = page.at(-1);
  } while (after !== undefined);
}

/** The same without their keys. */
export async function* documentsOf<T>(...scope: Parameters<typeof scanAll>): AsyncGenerator<T> {
  for await (const { document } of scanAll(...scope)) yield document as T;
}
