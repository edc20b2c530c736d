import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { parse } from 'yaml';
import { appendToEnd, parsedJson, type EventLog } from '../../src/event-log/event-log';
import type { Streams } from '../../src/event-log/streams';
import { blocks } from '../docs/pages';
import { anEvent, idsOf } from '../support/events';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { operatorAt } from '../support/operator';
import { openLogIn } from '../support/profile';
import { spawnProgram } from '../support/service';
import { until } from '../support/waiting';

/** It is often in a folder that only root has on the path. */
const PATH = `${process.env['PATH']}:/usr/sbin:/sbin`;
const hasRsyslog = spawnSync('rsyslogd', ['-v'], { env: { PATH } }).status === 0;

/** Receives lines, as a service that keeps logs does. */
const collector = async () => {
  let text = '';
  const server: Server = createServer((socket) => {
    socket
      .setEncoding('utf8')
      .on('data', (chunk: string) => (text += chunk))
      .on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    ids: () =>
      new Set(
        text.split('\n').flatMap((line) => (parsedJson(line) as { id?: string } | undefined)?.id ?? []),
      ),
    close: () => server.close(),
  };
};

const ended = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  child.kill(signal);
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
};

describe('docs/shipping.md', () => {
  it('configures Vector and Fluent Bit in YAML', () => {
    const [vector, fluentBit] = blocks('docs/shipping.md', 'yaml').map(
      (text) => parse(text) as Record<string, unknown>,
    );
    expect([Object.keys(vector ?? {}), Object.keys(fluentBit ?? {})]).toEqual([
      ['data_dir', 'sources', 'transforms', 'sinks'],
      ['service', 'pipeline'],
    ]);
  });

  describe('rsyslog with the configuration as written', () => {
    const folder = freshFolder();
    const [output, cursor, work, pid, file] = ['audit.ndjson', 'cursor', 'work', 'pid', 'rsyslog.conf'].map(
      (name) => join(folder, name),
    ) as [string, string, string, string, string];
    const args = ['audit', '--follow', '--output', output, '--cursor-file', cursor];
    let log: EventLog;
    let streams: Streams;
    let tenant: string;
    const children = new Set<ChildProcess>();

    const rsyslogd = (): ChildProcess => {
      rmSync(pid, { force: true });
      const child = spawn('rsyslogd', ['-n', '-f', file, '-i', pid], { env: { PATH }, stdio: 'ignore' });
      children.add(child);
      return child;
    };
    const follower = (): ChildProcess => spawnProgram(args, { DATA_DIR: folder });
    const append = async (number: number, note = ''): Promise<readonly string[]> => {
      const data = { entityId: 'tok_1', note };
      const events = Array.from({ length: number }, () => anEvent(data, { type: 'TokenRead' }));
      await appendToEnd(log, streams.activity(tenant), events);
      return idsOf(events);
    };

    beforeAll(async () => {
      tenant = (await operatorAt(folder).json('tenant create --name Acme'))['tenant_id'] ?? '';
      ({ log, streams } = await openLogIn(folder));
    });
    afterAll(async () => {
      for (const child of children) child.kill('SIGKILL');
      await log.close();
    });

    itIf(hasRsyslog, 'rsyslogd is not installed')(
      'sends every event, however large, also if it or the command is killed',
      async () => {
        const { port, ids, close } = await collector();
        const written = blocks('docs/shipping.md', 'rsyslog').join();
        expect(written).toContain('logs.example.com');
        const configuration = written
          .replace('/var/log/tenant-ledger/audit.ndjson', output)
          .replace('logs.example.com', '127.0.0.1')
          .replace('6514', String(port));
        mkdirSync(work);
        writeFileSync(file, `global(workDirectory="${work}")\n${configuration}`);

        const sent: string[] = [];
        const arrived = () => until(() => sent.every((id) => ids().has(id)), 60_000);
        let [shipper, following] = [rsyslogd(), follower()];
        sent.push(...(await append(50)), ...(await append(1, `"\\ü\u2028${'x'.repeat(300_000)}`)));
        await arrived();
        for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
          sent.push(...(await append(400)));
          await Promise.all([ended(shipper, signal), ended(following, 'SIGKILL')]);
          sent.push(...(await append(400)));
          [shipper, following] = [rsyslogd(), follower()];
          await arrived();
        }
        await Promise.all([ended(shipper, 'SIGTERM'), ended(following, 'SIGTERM')]);
        close();
      },
      180_000,
    );
  });
});
