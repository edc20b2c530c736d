interface Closable {
  close(): Promise<void>;
}

/** What was opened is closed in reverse order, also when opening the rest fails. */
export const openAll = async <T>(
  open: (closing: <P extends Closable>(part: P) => P) => Promise<T>,
): Promise<T & Closable> => {
  const opened: Closable[] = [];
  const close = async (): Promise<void> => {
    for (const part of opened) await part.close();
  };
  try {
    const all = await open((part) => {
      opened.unshift(part);
      return part;
    });
    return { ...all, close };
  } catch (error) {
    await close();
    throw error;
  }
};
