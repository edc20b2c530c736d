import { existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { fault, messageOf } from '../../fault';

/** The destination of an export. */
export interface Output {
  /** Resolves once it can take more. A write error is thrown by the next call. */
  write(bytes: Buffer): Promise<void>;
  /** Completes the output. */
  finish(trailer: string): Promise<void>;
  /** Ends early and leaves nothing that looks complete. */
  abandon(): Promise<void>;
}

const failed = (file: string) => (error: unknown) => {
  throw fault('output_failed', `The file ${file} cannot be written: ${messageOf(error)}`);
};

/** Writes to a temporary file next to it, which is synced and renamed once complete. */
export const fileOutput = async (file: string): Promise<Output> => {
  if (existsSync(file))
    throw fault('output_failed', `The file ${file} exists already. Name another one, or remove it first.`);
  const temporary = `${file}.${process.pid}.partial`;
  const handle = await open(temporary, 'wx').catch(failed(file));
  let isOpen = true;
  /** The write in progress, while the next lines are prepared. */
  let writing = Promise.resolve();

  const write = async (bytes: Buffer): Promise<void> => {
    await writing;
    writing = handle.writeFile(bytes).catch(failed(file));
    // The next `write` or `finish` throws it.
    writing.catch(() => undefined);
  };
  const close = async (): Promise<void> => {
    await writing.catch(() => undefined);
    if (isOpen) await handle.close();
    isOpen = false;
  };

  return {
    write,
    finish: async (trailer) => {
      await write(Buffer.from(`${trailer}\n`));
      await writing;
      await handle.sync().catch(failed(file));
      await close();
      await rename(temporary, file).catch(failed(file));
    },
    abandon: async () => {
      await close();
      await rm(temporary, { force: true });
    },
  };
};
