import { once } from 'node:events';
import { TIMES } from '../../src/times';
import { beside } from '../support/beside';
import { ask, rename } from '../support/http';
import { answersIn, converse } from '../support/raw';
import { serviceProcess, startService, type Service } from '../support/service';
import { slowReadModels } from '../support/stuck';
import { until } from '../support/waiting';

/** A PUT whose body is still arriving. */
const slowPut = async (service: Service) => {
  const conversation = converse(service.url);
  const headers = `Host: x\r\nSVC-API-KEY: ${service.key}\r\nContent-Type: application/json\r\nContent-Length: 19\r\n`;
  conversation.socket.write(`PUT /tenants/self HTTP/1.1\r\n${headers}\r\n{"name":`);
  await once(conversation.socket, 'connect');
  expect((await ask(`${service.url}/permissions`, { key: service.key })).status).toBe(200);
  return conversation;
};

const refusesConnections = async (service: Service): Promise<boolean> => {
  const conversation = converse(service.url);
  const connected = await Promise.race([
    once(conversation.socket, 'connect').then(
      () => true,
      () => false,
    ),
    conversation.closed.then(() => false),
  ]);
  conversation.socket.destroy();
  return !connected;
};

describe('shutdown', () => {
  it('finishes requests in progress, accepts no new ones, exits with 0, and does not wait for an idle connection', async () => {
    const service = await serviceProcess();
    const by = await beside(service);
    const before = await by.count();
    const ended = once(service.process, 'exit');
    const idle = converse(service.url);
    idle.socket.write(`GET /permissions HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${service.key}\r\n\r\n`);
    await until(() => idle.received().endsWith(']'));
    const conversation = await slowPut(service);
    const startedAt = Date.now();
    service.process.kill('SIGTERM');
    await until(() => refusesConnections(service), 5_000, 'refusing connections');
    expect(service.process.exitCode).toBeNull();
    conversation.socket.write('"Fare');
    expect(conversation.received()).toBe('');
    conversation.socket.write('well"}');
    await conversation.closed;
    const [response] = answersIn(conversation.received());
    expect([response?.status, response?.json?.name]).toEqual([200, 'Farewell']);
    expect(await ended).toEqual([0, null]);
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    await idle.closed;
    expect(await by.count()).toBe(before + 1);
    expect(service.stderr()).toContain('"msg":"stopped"');
  });

  it('on SIGINT, too, waits for a request whose commit of the read models is slow, and exits with 0', async () => {
    const service = await serviceProcess();
    slowReadModels(service.folder, 500_000).close();
    const ended = once(service.process, 'exit');
    const renaming = rename(service, service.key, 'B');
    const by = await beside(service);
    await until(async () => (await by.events()).some(({ data }) => (data as { name?: string }).name === 'B'));
    service.process.kill('SIGINT');
    expect(await renaming).toMatchObject({ status: 200, json: { name: 'B' } });
    expect(await ended).toEqual([0, null]);
    expect(service.stderr()).toContain('"msg":"stopped"');
  });

  it('is immediate on a second signal', async () => {
    const service = await serviceProcess();
    const ended = once(service.process, 'exit');
    await slowPut(service);
    service.process.kill('SIGTERM');
    await until(() => service.stderr().includes('a second signal exits at once'));
    service.process.kill('SIGTERM');
    expect(await ended).toEqual([130, null]);
  });

  it('waits for a limited time, and an aborted request changes nothing', async () => {
    const service = await startService({}, { ...TIMES, shutdownMs: 1_000 });
    const by = await beside(service);
    const before = await by.count();
    const conversation = await slowPut(service);
    const startedAt = Date.now();
    expect(await service.stop()).toBe(0);
    expect(Date.now() - startedAt).toBeLessThan(5_000);
    await conversation.closed;
    expect(conversation.received()).toBe('');
    expect(await by.count()).toBe(before);
  });
});
