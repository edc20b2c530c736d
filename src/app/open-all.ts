interface Closable {
  close(): Promise<void>;
}

/** Closes everything passed to `closeLater`, last first: on `close`, or as soon as `open` fails. */
export const openAll = async <T>(
  open: (closeLater: <P extends Closable>(part: P) => P) => Promise<T>,
): Promise<T & Closable> => {
  const opened: Closable[] = [];
  /** Closes all of them, even if some fail, and then throws the first error. */
  const close = async (): Promise<void> => {
    const errors: unknown[] = [];
    for (const part of opened) await part.close().catch((error: unknown) => errors.push(error));
    if (errors.length > 0) throw errors[0];
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
