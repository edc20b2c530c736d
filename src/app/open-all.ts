interface Closable {
  close(): Promise<void>;
}

/** What was opened is closed in reverse order, also when opening the rest fails. */
export const openAll = async <T>(
  open: (closing: <P extends Closable>(part: P) => P) => Promise<T>,
): Promise<T & Closable> => {
  const opened: Closable[] = [];
  /** All of them, also when one fails; then it fails with the first failure. */
  const close = async (): Promise<void> => {
    const failures: unknown[] = [];
    for (const part of opened) await part.close().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  };
  try {
    const all = await open((part) => {
      opened.unshift(part);
      return part;
    });
    return { ...all, close };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
};
