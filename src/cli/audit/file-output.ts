import { existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { fault, messageOf } from '../../fault';

/** Where the lines of an export go. */
export interface Output {
  /** Resolves when more can be taken; what could not be written is an error of the next call. */
  write(bytes: Buffer): Promise<void>;
  /** Everything was written. */
  finish(trailer: string): Promise<void>;
  /** It ends early: nothing that looks complete is left. */
  abandon(): Promise<void>;
}

const failed = (file: string) => (error: unknown) => {
  throw fault('output_failed', `The file ${file} cannot be written: ${messageOf(error)}`);
};

/** Written under a temporary name beside it, and renamed when it is complete and on the disk. */
export const fileOutput = async (file: string): Promise<Output> => {
  if (existsSync(file))
    throw fault('output_failed', `The file ${file} exists already. Name another one, or remove it first.`);
  const temporary = `${file}.${process.pid}.partial`;
  const handle = await open(temporary, 'wx').catch(failed(file));
  let isOpen = true;
  /** One write is under way while the next lines are made. */
  let writing = Promise.resolve();

  const write = async (bytes: Buffer): Promise<void> => {
    await writing;
    writing = handle.writeFile(bytes).catch(failed(file));
    // Whoever writes next, or finishes, hears of it.
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
