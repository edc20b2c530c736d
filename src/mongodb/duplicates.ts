import type { Collection, OptionalUnlessRequiredId } from 'mongodb';

const DUPLICATE_KEY = 11_000;

export const isDuplicate = (error: unknown): boolean => (error as { code?: unknown }).code === DUPLICATE_KEY;

/** Does nothing if a document with this id exists. */
export const insertOnce = async <T extends { readonly _id: string }>(
  collection: Collection<T>,
  document: T,
): Promise<void> => {
  try {
    await collection.insertOne(document as unknown as OptionalUnlessRequiredId<T>);
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
};
