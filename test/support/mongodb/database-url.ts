import { createHash } from 'node:crypto';

export const databaseUrl = (server: string, place: string): string => {
  const name = `test_${createHash('sha256').update(place).digest('hex').slice(0, 24)}`;
  const [, servers = '', options = ''] = /^(mongodb(?:\+srv)?:\/\/[^/?]+)\/?[^?]*(\?.*)?$/.exec(server) ?? [];
  return `${servers}/${name}${options}`;
};
