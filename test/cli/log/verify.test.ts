import { DatabaseSync } from '@photostructure/sqlite';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteEventLog } from '../../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../../src/event-log/streams';
import { fillBusyLog } from '../../support/busy-log';
import { anEvent } from '../../support/events';
import { fileOf } from '../../support/fact-file';
import { aFact } from '../../support/facts';
import { freshFolder } from '../../support/folders';
import { EMBEDDED } from '../../support/profile';
import { operatorAt } from '../../support/operator';

const withLog = async (count: number): Promise<string> => {
  const [folder, streams] = [freshFolder(), streamNames('p-')];
  const log = await sqliteEventLog(folder, streams);
  await fillBusyLog({ log, streams }, count);
  await log.close();
  return folder;
};

describe('tenant-ledger log verify', () => {
  it('prints its findings, the digest that log copy prints, and whether an earlier history is still there', async () => {
    const [folder, elsewhere] = [await withLog(300), freshFolder()];
    const operator = operatorAt(folder, { EVENTSTORE_URL: '', STREAM_PREFIX: 'p-' });
    const first = await operator.json<Record<string, unknown>>('log verify');
    expect(first).toMatchObject({ events: 300, streams: 50, findings_total: 0, findings: [] });
    const earlier = join(freshFolder(), 'earlier.json');
    writeFileSync(earlier, JSON.stringify(first));

    const { source_digest } = await operator.json(
      'log copy --from configured --to',
      elsewhere,
      '--to-prefix',
      '',
    );
    expect(source_digest).toBe(first['digest']);
    const ofCopy = await operator.run(
      'log verify',
      `sqlite:${elsewhere}`,
      '--prefix',
      '',
      '--against',
      earlier,
    );
    expect(ofCopy.code).toBe(0);
    expect(ofCopy.stdout).toMatch(/^events: +300$/m);
    expect(ofCopy.stdout).toMatch(/^earlier_history: unchanged$/m);
    expect(ofCopy.stderr).toBe('This log still starts with that history, 300 events.\n');

    const db = new DatabaseSync(join(folder, 'events.db'));
    db.exec(`UPDATE events SET data = '{"entityId":"other"}' WHERE position = 120`);
    db.exec('DELETE FROM events WHERE position = 60');
    db.close();
    const changed = await operator.run('log verify --against', earlier);
    expect(changed.code).toBe(1);
    expect(changed.stdout).toMatch(/^earlier_history: cut$/m);
    expect(changed.stdout).toMatch(/^gap .* p-activity-\S+ lacks revision 1 before this event\.$/m);
    expect(changed.stderr).toContain('It was cut');
  });

  it('counts second copies and what was set aside apart, and succeeds', async () => {
    const folder = freshFolder();
    const operator = operatorAt(folder, EMBEDDED);
    const { tenant_id = '' } = await operator.json('tenant create --name Acme');
    const [fact, bad] = [anEvent({ entityId: 'a' }, { type: 'TokenCreated' }), anEvent()];
    const log = await sqliteEventLog(folder, streamNames());
    await log.append(streamNames().activity(tenant_id), [fact, fact, bad], 'no_stream');
    await log.close();
    const red = await operator.run('log verify --json');
    expect(red.code).toBe(1);
    expect(JSON.parse(red.stdout)).toMatchObject({
      findings_total: 1,
      copies_total: 1,
      set_aside_total: 0,
      findings: [{ kind: 'bad_event', event_id: bad.id }],
      notes: [{ kind: 'copy', event_id: fact.id, revision: 1 }],
    });

    await operator.run('tenant show', tenant_id); // projects up to the bad event
    await operator.json('projections set-aside', bad.id, '--reason', 'Not ours.');
    const plain = await operator.run('log verify');
    expect([plain.code, plain.stderr]).toEqual([0, '']);
    expect(plain.stdout).toMatch(/^findings_total: +0\ncopies_total: +1\nset_aside_total: +1$/m);
    expect(plain.stdout).toMatch(/^copy .* It is a second copy of revision 0 of activity-/m);
    expect(plain.stdout).toMatch(/^set_aside .* The event type SomethingHappened is unknown\.$/m);

    const line = aFact(tenant_id, { id: bad.id });
    expect(await operator.json('ingest', fileOf([line, { ...line, id: fact.id }]))).toMatchObject({
      accepted: 0,
      already_there: 2,
    });
  });

  it('says what is wrong with its arguments', async () => {
    const folder = await withLog(1);
    const file = join(freshFolder(), 'file.json');
    writeFileSync(file, '{"events":"many"}');
    const operator = operatorAt(folder, { EVENTSTORE_URL: '', STREAM_PREFIX: 'p-' });
    const refused = async (...line: readonly string[]) => {
      const { code, stdout, stderr } = await operator.run('log verify', ...line);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      return stderr;
    };
    expect(await refused('--against', file)).toContain(
      'is not the output of tenant-ledger log verify --json',
    );
    expect(await refused('--against', `${file}x`)).toContain('[file_unreadable]');
    expect(await refused('--prefix', 'q-')).toContain('have the prefix "p-", but --prefix, ');
    expect(await refused(freshFolder())).toMatch(/^tenant-ledger: There is no event log in the folder /);
  });
});
