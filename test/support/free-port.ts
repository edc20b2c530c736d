import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** For a server that must get the same port again, or whose address is needed before it starts. */
export const freePort = async (): Promise<string> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return String(port);
};
