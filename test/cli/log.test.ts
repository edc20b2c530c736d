import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { fillBusyLog } from '../support/busy-log';
import { anEvent } from '../support/events';
import { fileOf } from '../support/fact-file';
import { aFact } from '../support/facts';
import { freshFolder } from '../support/folders';
import { ask, rename } from '../support/http';
import { operatorAt } from '../support/operator';
import { EMBEDDED } from '../support/profile';
import { startService, type Service } from '../support/service';
import { editLog, inFile } from '../support/sqlite-logs';

const at = (folder: string, prefix = '') => operatorAt(folder, { ...EMBEDDED, STREAM_PREFIX: prefix });

const withLog = async (count: number, prefix = ''): Promise<string> => {
  const [folder, streams] = [freshFolder(), streamNames(prefix)];
  const log = await sqliteEventLog(folder, streams);
  await fillBusyLog({ log, streams }, count);
  await log.close();
  return folder;
};

const countIn = (folder: string): number =>
  inFile(folder, (db) => db.prepare('SELECT count(*) AS events FROM events').get() as { events: number })
    .events;

describe('tenant-ledger log copy', () => {
  it('creates a log that the service works on as before, and never adds to one that is complete', async () => {
    const [from, to] = [at(freshFolder()), at(freshFolder())];
    const { tenant_id: id } = await from.json('tenant create', '--name', 'Émile & Sons');
    const report = await from.run('log copy --from configured --to', to.folder);
    expect(report).toMatchObject({ code: 0, stderr: '' });
    expect(report.stdout).toMatch(/^from: .*\nto: .*\nevents: +1\ndigest: +[0-9a-f]{64}\n$/);
    const [there, here] = await Promise.all([to, from].map((side) => side.json(`tenant show ${id}`)));
    expect(there).toEqual(here);
    const other = await withLog(10);
    for (const target of [to.folder, from.folder]) {
      const again = await from.run('log copy', '--from', other, '--to', target);
      expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('[copy_refused]')]);
      expect(countIn(target)).toBe(1);
    }
  });
});

describe('the cursors and positions that a client has', () => {
  it('go on in the same place after its log was copied, and its read models were rebuilt', async () => {
    const [from, to] = [freshFolder(), freshFolder()];
    const first = await startService({ DATA_DIR: from, ...EMBEDDED });
    const { key } = first;
    for (const name of ['A', 'B', 'C', 'D']) await rename(first, key, name);
    const pageOf = ({ url }: Service, more = '') =>
      ask(`${url}/logs?entity_type=tenant&size=2${more}`, { key });
    const cursor = `&start=${(await pageOf(first)).json.pagination.after}`;
    const next = (await pageOf(first, cursor)).json;
    expect(next.data).toHaveLength(2);
    const eventsAfter = async ({ url }: Service) =>
      (await ask(`${url}/events?after=tenant:1&limit=3`, { key })).text.split('\n').slice(0, 3);
    const events = await eventsAfter(first);
    await first.stop();
    await at(from).json('log copy --from configured --to', to);
    const second = await startService({ DATA_DIR: to, ...EMBEDDED });
    for (const step of ['copied', 'rebuilt']) {
      if (step === 'rebuilt') await at(to).json('projections rebuild');
      expect((await pageOf(second, cursor)).json).toEqual(next);
      expect(await eventsAfter(second)).toEqual(events);
    }
  });
});

describe('tenant-ledger log verify', () => {
  it('prints its findings, and the digest that log copy prints', async () => {
    const [folder, elsewhere] = [await withLog(300, 'p-'), freshFolder()];
    const operator = at(folder, 'p-');
    const first = await operator.json<Record<string, unknown>>('log verify');
    expect(first).toMatchObject({ events: 300, streams: 50, findings_total: 0, findings: [] });
    const { digest } = await operator.json('log copy --from configured --to', elsewhere);
    expect(digest).toBe(first['digest']);
    expect(await operator.json(`log verify sqlite:${elsewhere}`)).toMatchObject({ events: 300, digest });

    editLog(folder, 'DELETE FROM events WHERE position = 60');
    const changed = await operator.run('log verify');
    expect(changed.code).toBe(1);
    expect(changed.stdout).toMatch(/^gap .* p-activity-\S+ lacks revision 1 before this event\.$/m);
  });

  it('counts what was set aside apart, and succeeds', async () => {
    const folder = freshFolder();
    const operator = at(folder);
    const { tenant_id = '' } = await operator.json('tenant create --name Acme');
    const [fact, bad] = [anEvent({ entityId: 'a' }, { type: 'TokenCreated' }), anEvent()];
    const log = await sqliteEventLog(folder, streamNames());
    await log.append(streamNames().activity(tenant_id), [fact, fact, bad], 'no_stream');
    await log.close();
    const red = await operator.run('log verify --json');
    expect(red.code).toBe(1);
    expect(JSON.parse(red.stdout)).toMatchObject({
      findings_total: 1,
      set_aside_total: 0,
      findings: [{ kind: 'bad_event', event_id: bad.id }],
    });

    await operator.run('tenant show', tenant_id); // projects up to the bad event
    await operator.json('projections set-aside', bad.id, '--reason', 'Not ours.');
    const plain = await operator.run('log verify');
    expect([plain.code, plain.stderr]).toEqual([0, '']);
    expect(plain.stdout).toMatch(/^findings_total: +0\nset_aside_total: +1$/m);

    const line = aFact(tenant_id, { id: bad.id });
    expect(await operator.json('ingest', fileOf([line, { ...line, id: fact.id }]))).toMatchObject({
      accepted: 0,
      already_there: 2,
    });
  });

  it('says what is wrong with its arguments', async () => {
    const operator = at(await withLog(1, 'p-'));
    const refused = async (...line: readonly string[]) => {
      const { code, stdout, stderr } = await operator.run('log verify', ...line);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      return stderr;
    };
    expect(await refused()).toContain('have the prefix "p-", but STREAM_PREFIX is ""');
    expect(await refused(freshFolder())).toMatch(/^tenant-ledger: There is no event log in the folder /);
  });
});
