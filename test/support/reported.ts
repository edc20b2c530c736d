import type { ServiceProcess } from './service';
import { until } from './waiting';

/** What a server says on SIGUSR2, with one of the reporters loaded into it. Its lines start with this member. */
export const reported = async (service: ServiceProcess, member: string): Promise<unknown> => {
  const lines = (): readonly string[] =>
    service
      .stderr()
      .split('\n')
      .filter((line) => line.startsWith(`{"${member}"`));
  const before = lines().length;
  service.process.kill('SIGUSR2');
  await until(() => lines().length > before);
  return JSON.parse(lines().at(-1) ?? '');
};
