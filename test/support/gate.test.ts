import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { monotonicMs } from '../../src/async/clock';
import { openGate, type Gate } from './gate';
import { until } from './waiting';

describe('a gate', () => {
  const closing: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  /** A server that repeats what it gets, and a client that talks to it through a gate. */
  const given = async () => {
    const received: string[] = [];
    const server = createServer((socket) => {
      socket
        .on('error', () => undefined)
        .on('data', (bytes) => {
          received.push(String(bytes));
          socket.write(bytes);
        });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const gate = await openGate(() => (server.address() as AddressInfo).port);
    closing.push(() => server.close(), gate.shut);
    const client = connect(gate.port, '127.0.0.1').on('error', () => undefined);
    closing.push(() => client.destroy());
    let text = '';
    client.on('data', (bytes) => (text += String(bytes)));
    await until(() => gate.connections().now === 1);
    return { gate, client, answered: () => text, received: () => received.join('') };
  };
  const roundTrip = async (client: Socket, answered: () => string, text: string): Promise<number> => {
    const startedAt = monotonicMs();
    client.write(text);
    await until(() => answered().endsWith(text));
    return monotonicMs() - startedAt;
  };

  it('passes everything on, later if told so, and in order when it is no longer told so', async () => {
    const { gate, client, answered } = await given();
    await roundTrip(client, answered, 'a');
    gate.delay(40);
    expect(await roundTrip(client, answered, 'b')).toBeGreaterThanOrEqual(80);
    client.write('c');
    gate.delay(0);
    await roundTrip(client, answered, 'd');
    expect(answered()).toBe('abcd');
  });

  it.each<[string, (gate: Gate) => void, string]>([
    ['loses answers', (gate) => gate.lose('answers'), 'ax'],
    ['loses everything', (gate) => gate.lose('everything'), 'a'],
    ['freezes', (gate) => gate.freeze(), 'a'],
  ])('%s, although both sides stay connected', async (_, happens, received) => {
    const one = await given();
    await roundTrip(one.client, one.answered, 'a');
    happens(one.gate);
    one.client.write('x');
    await until(() => one.received() === received);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([one.received(), one.answered(), one.client.destroyed]).toEqual([received, 'a', false]);
    one.gate.lose('nothing');
    one.gate.thaw();
    await roundTrip(one.client, one.answered, 'z');
  });

  it('cuts connections, and listens again on the same port', async () => {
    const { gate, client } = await given();
    gate.cut();
    await until(() => client.destroyed && gate.connections().now === 0);
    await gate.shut();
    const refused = connect(gate.port, '127.0.0.1');
    await once(refused, 'error');
    await gate.open();
    const again = connect(gate.port, '127.0.0.1');
    await once(again, 'connect');
    again.destroy();
  });

  it('passes on the end, after what was sent before it', async () => {
    const { gate, client, received } = await given();
    gate.delay(20);
    client.end('the last words');
    await until(() => received() === 'the last words');
    await until(() => gate.connections().now === 0);
  });
});
