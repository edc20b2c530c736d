/** The wire format of a stream of events. */
export interface StreamForm {
  event(position: string, json: string): string;
  heartbeat(): string;
  trailer(json: string): string;
  end(json: string): string;
}

export const streamForms = {
  ndjson: {
    event: (_, json) => `${json}\n`,
    heartbeat: () => '\n',
    trailer: (json) => `${json}\n`,
    end: (json) => `${json}\n`,
  },
  serverSentEvents: {
    event: (position, json) => `id: ${position}\ndata: ${json}\n\n`,
    heartbeat: () => ': still here\n\n',
    trailer: (json) => `event: trailer\ndata: ${json}\n\n`,
    end: (json) => `event: end\ndata: ${json}\n\n`,
  },
} satisfies Record<string, StreamForm>;

export type StreamFormName = keyof typeof streamForms;
