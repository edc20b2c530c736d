import { EventSource } from 'eventsource';
import { startStandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { freePort } from '../support/free-port';
import { rename } from '../support/http';
import { clustered, EMBEDDED } from '../support/profile';
import { command, serviceProcess, startCommand, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

interface Event {
  readonly id: string;
  readonly type: string;
  readonly tenant_id?: string;
  readonly position: string;
  readonly data: { readonly name?: string };
}

/** A store that can be killed and restarted. A file has no process to kill. */
interface Store {
  readonly env: Readonly<Record<string, string>>;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const nothing = async (): Promise<void> => undefined;
const stores: Readonly<Record<string, () => Promise<Store>>> = {
  'a file': async () => ({ env: EMBEDDED, kill: nothing, restart: nothing, stop: nothing }),
  'an event store that is killed, too': async () => {
    const store = await startStandIn();
    const env = clustered(store.url);
    return { env, kill: store.kill, restart: store.restart, stop: store.stop };
  },
};

const eventsIn = (text: string): readonly Event[] =>
  text
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.startsWith('{"id"'))
    .map((line) => JSON.parse(line) as Event);

/** It closes for good at a response that is not 200, which a busy machine may give; then it is opened again. */
const browser = (url: string, key: string) => {
  const sent: (string | null)[] = [];
  const events: Event[] = [];
  const open = (): EventSource => {
    const opened = new EventSource(url, {
      fetch: (input, init) => {
        const headers = new Headers(init.headers);
        headers.set('SVC-API-KEY', key);
        const last = headers.get('Last-Event-ID') ?? events.at(-1)?.position ?? null;
        if (last !== null) headers.set('Last-Event-ID', last);
        sent.push(last);
        return fetch(input, { ...init, headers });
      },
    });
    opened.addEventListener('message', ({ data }) => events.push(JSON.parse(String(data)) as Event));
    opened.addEventListener('error', () => {
      if (opened.readyState === EventSource.CLOSED) source = open();
    });
    return opened;
  };
  let source = open();
  return { events: () => events, sent, close: () => source.close() };
};

/** Repeated for as long as the machine is too busy for it. */
const put = async (service: Service, key: string, name: string): Promise<void> => {
  const { status } = await rename(service, key, name);
  if (status === 503) return put(service, key, name);
  expect(status).toBe(200);
};

const idsOf = (events: readonly Event[]): readonly string[] => events.map(({ id }) => id);
const hasSeen = (events: () => readonly Event[], name: string) => (): boolean =>
  events().some(({ data }) => data.name === name);

describe('followers', () => {
  const title = 'resume after the service was killed, without a gap or a repeat, with the log in %s';
  it.each(Object.entries(stores))(title, async (_, open) => {
    const store = await open();
    const [folder, PORT] = [freshFolder(), await freePort()];
    const env = { DATA_DIR: folder, PORT, ...store.env };
    const first = await serviceProcess(env);
    const { key } = first;
    const url = `${first.url}/events?follow=true`;
    const following = startCommand(['audit', '--follow'], env);
    const followers = {
      cli: { ...following, events: () => eventsIn(following.stdout()) },
      eventSource: browser(url, key),
    };
    const all = Object.values(followers);
    for (const name of ['a', 'b', 'c']) await put(first, key, name);
    for (const { events } of all) await until(hasSeen(events, 'c'));

    await first.kill();
    await store.kill();
    await store.restart();
    const second = await startService(env);
    for (const name of ['d', 'e', 'f']) await put(second, key, name);
    for (const { events } of all) await until(hasSeen(events, 'f'));

    followers.eventSource.close();
    following.signal('SIGINT');
    expect(await following.done).toBe(0);
    const { stdout } = await command(['audit'], env);
    const stored = eventsIn(stdout);
    const tenantId = stored.find(({ data }) => data.name === 'f')?.tenant_id;
    const own = idsOf(stored.filter(({ tenant_id }) => tenant_id === tenantId));
    expect(idsOf(followers.cli.events())).toEqual(idsOf(stored));
    expect(idsOf(followers.eventSource.events())).toEqual(own);
    expect(followers.eventSource.sent[0]).toBeNull();
    expect(followers.eventSource.sent.at(-1)).toEqual(expect.any(String));
    expect(following.stderr()).toContain(`To continue: --after ${stored.at(-1)?.position}`);
    await second.stop();
    await store.stop();
  });
});
