import { existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { fault, messageOf } from '../fault';

/** Where the lines of an export go. */
export interface Output {
  write(text: string): Promise<void>;
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

  const close = async (): Promise<void> => {
    if (isOpen) await handle.close();
    isOpen = false;
  };

  return {
    write: (text) => handle.writeFile(text).catch(failed(file)),
    finish: async (trailer) => {
      await handle.writeFile(`${trailer}\n`).catch(failed(file));
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
