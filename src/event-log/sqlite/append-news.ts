import { resolve } from 'node:path';

/** Tells all threads of this process that have a log open of every group of appends. */
export interface AppendNews {
  /** To the listeners of this thread at once, to other threads with the next turn of their event loops. */
  announce(): void;
  listen(wake: () => void): void;
  close(): void;
}

interface Channel {
  readonly channel: InstanceType<typeof BroadcastChannel>;
  readonly wakes: Set<() => void>;
  users: number;
  isListening: boolean;
}

/** One per file in each thread. */
const channels = new Map<string, Channel>();

const opened = (path: string): Channel => {
  const known = channels.get(path);
  if (known !== undefined) return known;
  const channel = new BroadcastChannel(`tenant-ledger ${path}`);
  (channel as unknown as { unref(): void }).unref();
  const wakes = new Set<() => void>();
  const created = { channel, wakes, users: 0, isListening: false };
  channels.set(path, created);
  return created;
};

const wakeAll = ({ wakes }: Channel): void => {
  for (const wake of wakes) wake();
};

export const appendNews = (path: string): AppendNews => {
  const name = resolve(path);
  const shared = opened(name);
  shared.users += 1;
  let own: (() => void) | undefined;
  return {
    announce: () => {
      wakeAll(shared);
      shared.channel.postMessage('');
    },
    listen: (wake) => {
      own = wake;
      shared.wakes.add(wake);
      // A thread that follows nothing is not woken.
      if (!shared.isListening) shared.channel.addEventListener('message', () => wakeAll(shared));
      shared.isListening = true;
    },
    close: () => {
      if (own !== undefined) shared.wakes.delete(own);
      shared.users -= 1;
      if (shared.users > 0) return;
      shared.channel.close();
      channels.delete(name);
    },
  };
};
