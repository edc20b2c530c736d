import { randomUUID } from 'node:crypto';
import { readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onDisk, whyNoDisks } from '../support/disks';
import { ask, rename } from '../support/http';
import { itIf } from '../support/it-if';
import { eventsIn } from '../support/operator';
import { EMBEDDED } from '../support/profile';
import { command, serviceProcess } from '../support/service';
import { until } from '../support/waiting';

const fill = (disk: string, leftBytes = 0): void => {
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(join(disk, 'filling'), Buffer.alloc(bavail * bsize - leftBytes));
};

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file));

describe('a service on a full disk', () => {
  itIf(whyNoDisks === '', whyNoDisks)('says that nothing was changed, and serves reads after a kill', () =>
    onDisk('size=3m', async (disk) => {
      const DATA_DIR = join(disk, 'data');
      const service = await serviceProcess({ DATA_DIR });
      const { key } = service;
      expect((await rename(service, key, 'Before')).status).toBe(200);
      const before = await eventsIn(DATA_DIR);
      fill(disk);
      for (let i = 0; i < 10; i += 1)
        expect((await rename(service, key, `Full ${i}`)).json).toMatchObject({
          code: 'log_unavailable',
          detail: 'Nothing was changed. The disk of the event log is full: the operator has to make room.',
        });
      await service.kill();

      const again = await serviceProcess({ DATA_DIR });
      expect((await ask(`${again.url}/tenants/self`, { key })).json).toMatchObject({ name: 'Before' });
      expect((await rename(again, key, 'Still full')).json).toMatchObject({ code: 'log_unavailable' });
      rmSync(join(disk, 'filling'));
      expect(await eventsIn(DATA_DIR)).toEqual(before);
      expect((await rename(again, key, 'After')).status).toBe(200);
      expect(await again.stop()).toBe(0);
    }),
  );

  itIf(whyNoDisks === '', whyNoDisks)('ends with one sentence where SQLite cannot open the files', () =>
    onDisk('size=3m', async (disk) => {
      const DATA_DIR = join(disk, 'data');
      expect(await (await serviceProcess({ DATA_DIR })).stop()).toBe(0);
      // As if the disk had been copied to another one.
      for (const file of filesIn(DATA_DIR)) if (/-(shm|wal)$/.test(file)) rmSync(file);
      fill(disk);
      const { code, stderr } = await command(['serve'], { DATA_DIR, PORT: '0', OPS_PORT: '0' });
      expect(code).toBe(1);
      expect(stderr).toMatch(/^tenant-ledger: [^\n]+\n$/);
      expect(stderr).toContain(`The folder ${DATA_DIR} cannot be used: its disk is full`);
    }),
  );
});

const CLIENTS = 8;
/** What is left for the writes before the disk is full. */
const LEFT_BYTES = 400_000;

describe('a disk that is full under clients that write', () => {
  itIf(whyNoDisks === '', whyNoDisks)(
    'loses and doubles nothing: what was refused was not written, and succeeds when there is room again',
    () =>
      onDisk('size=8m', async (disk) => {
        const DATA_DIR = join(disk, 'data');
        const { url, key, operationsUrl, stop } = await serviceProcess({ ...EMBEDDED, DATA_DIR });
        fill(disk, LEFT_BYTES);
        const put = (name: string) => rename({ url }, key, name, { headers: { 'Idempotency-Key': name } });
        const [acknowledged, refused]: [string[], string[]] = [[], []];
        const client = async (): Promise<void> => {
          for (let failures = 0; failures < 5;) {
            const name = `${randomUUID()}-${'x'.repeat(150)}`;
            const { status, json } = await put(name);
            if (status === 200) acknowledged.push(name);
            else {
              expect([status, json.code]).toEqual([503, 'log_unavailable']);
              refused.push(name);
              failures += 1;
            }
          }
        };
        await Promise.all(Array.from({ length: CLIENTS }, client));
        expect((await ask(`${operationsUrl}/readyz`)).status).toBe(503);
        const named = async () =>
          (await eventsIn(DATA_DIR))
            .filter(({ type, metadata }) => type === 'TenantUpdated' && 'idempotency' in (metadata as object))
            .map(({ data }) => (data as { name: string }).name);

        rmSync(join(disk, 'filling'));
        expect((await named()).toSorted()).toEqual(acknowledged.toSorted());
        for (const name of [...refused, ...refused.slice(0, 3), acknowledged[0]!])
          expect((await put(name)).status).toBe(200);
        expect((await named()).toSorted()).toEqual([...acknowledged, ...refused].toSorted());
        await until(async () => (await ask(`${url}/tenants/self`, { key })).json.name === refused.at(-1));
        expect((await ask(`${operationsUrl}/readyz`)).status).toBe(200);
        expect(await stop()).toBe(0);
      }),
  );
});
