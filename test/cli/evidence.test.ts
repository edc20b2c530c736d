import { createHash, randomUUID } from 'node:crypto';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportLines } from '../../src/audit/export';
import type { Difference } from '../../src/evidence/check-export';
import { evidenceKey, openCheckpoint, originOf, proofText, signedCheckpoint } from '../../src/evidence/note';
import { inclusionProof, treeOf } from '../../projections/evidence';
import { freshFolder } from '../support/folders';
import { operatorAt, type Operator } from '../support/operator';
import { openAppIn, openLogIn } from '../support/profile';
import { fact, reportFacts } from '../support/reported-facts';

const SECRET = 'a secret of the tests, long enough to be one';
const TENANT = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';
const ORIGIN = originOf(TENANT);
const FILE = `${TENANT}.checkpoint`;

type Lines = readonly string[];

interface Verified {
  readonly proven: number;
  readonly not_yet_proven: number;
  readonly second_copies: number;
  readonly size: number;
  readonly root: string;
  readonly differences?: readonly Difference[];
}

const written = (lines: Lines): string => {
  const file = join(freshFolder(), 'file');
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  return file;
};

const linesOf = (text: string): Lines => text.split('\n').slice(0, -1);

/** With the trailer that whoever altered the lines would write. */
const resealed = (lines: Lines): Lines => {
  const before = lines.slice(0, -1);
  const { trailer } = JSON.parse(lines.at(-1) ?? '') as { trailer: object };
  const sha256 = createHash('sha256')
    .update(before.map((line) => `${line}\n`).join(''))
    .digest('hex');
  return [...before, JSON.stringify({ trailer: { ...trailer, events: before.length, sha256 } })];
};

const filled = async (name: string): Promise<Operator> => {
  const operator = operatorAt(freshFolder(), { SECRET });
  await operator.json(`tenant create --id ${TENANT} --name ${name}`);
  await operator.json('tenant create --name Other');
  const create = `application create --tenant ${TENANT} --name App --type management --permission tenant:read`;
  const { application_id } = await operator.json(create);
  await operator.json(`application rename ${application_id} --tenant ${TENANT} --name Renamed`);
  const facts = Array.from({ length: 9 }, (_, n) => fact('TokenCreated', `tok_${n}`));
  await reportFacts(operator.folder, TENANT, facts);
  return operator;
};

const tenantLines = async (folder: string): Promise<Lines> => {
  const ledgerLog = await openLogIn(folder);
  const conditions = { view: 'tenant', filter: { tenants: [TENANT] } } as const;
  const range = { upTo: (await ledgerLog.log.head())?.position };
  const all: string[] = [];
  const exporting = { onUnreadable: () => undefined };
  for await (const { lines } of exportLines(ledgerLog, conditions, range, exporting)) all.push(...lines);
  await ledgerLog.log.close();
  return all;
};

const auditLines = async ({ run }: Operator): Promise<Lines> => linesOf((await run('audit')).stdout);

describe('tenant-ledger evidence', () => {
  let operator: Operator;
  let key: string;
  /** Of 13 rows, then of 16. */
  let [first, second]: readonly string[] = [];
  const exports: Record<string, Lines> = {};
  const kept = freshFolder();

  const copied = (): string => {
    const copy = join(freshFolder(), FILE);
    copyFileSync(join(kept, FILE), copy);
    return copy;
  };
  const verified = async (lines: Lines, checkpoint = second, earlier = [first]) => {
    const files = earlier.map((file) => `--earlier ${file}`).join(' ');
    const line = `evidence verify ${written(lines)} --checkpoint ${checkpoint} ${files} --key ${key} --json`;
    const { code, stdout, stderr } = await operatorAt('/dev/null').run(line);
    expect(stderr).toBe('');
    return { code, ...(JSON.parse(stdout) as Verified) };
  };

  beforeAll(async () => {
    operator = await filled('Acme');
    await operator.json(`evidence checkpoints --output ${kept}`);
    first = copied();
    const [id] = await reportFacts(operator.folder, TENANT, [fact('TokenRead', 'tok_1')]);
    await reportFacts(operator.folder, TENANT, [
      fact('TokenRead', 'tok_1', { id: id ?? '' }),
      fact('TokenRead', 'tok_2'),
      fact('TokenRead', 'tok_3'),
    ]);
    await operator.json(`evidence checkpoints --tenant ${TENANT} --output ${kept}`);
    second = copied();
    await reportFacts(operator.folder, TENANT, [fact('TokenRead', 'tok_4')]);
    ({ key = '' } = await operator.json(`evidence key --tenant ${TENANT}`));
    exports['audit'] = await auditLines(operator);
    exports['GET /events'] = await tenantLines(operator.folder);
  });

  it('writes a signed checkpoint for every tenant, and again when there are more events', async () => {
    expect(readdirSync(kept)).toHaveLength(2);
    const [before, after] = [first, second].map((file) => openCheckpoint(readFileSync(file!, 'utf8'), key));
    expect([before, after]).toMatchObject([
      { origin: ORIGIN, size: 13 },
      { origin: ORIGIN, size: 16 },
    ]);
    const { stdout } = await operator.run(`evidence key --tenant ${TENANT}`);
    expect(stdout).toBe(`${key}\n`);
  });

  it('keeps a checkpoint that is still right as it is', async () => {
    const folder = freshFolder();
    await operator.json(`evidence checkpoints --output ${folder}`);
    const before = readFileSync(join(folder, FILE), 'utf8');
    expect(await operator.json(`evidence checkpoints --output ${folder}`)).toHaveLength(2);
    expect(readFileSync(join(folder, FILE), 'utf8')).toBe(before);
    expect(readdirSync(folder)).toHaveLength(2);
  });

  const root = Buffer.alloc(32, 1);
  const signed = (size: number, secret = SECRET) =>
    signedCheckpoint({ origin: ORIGIN, size, root }, evidenceKey(secret));
  it.each([
    ['of as many rows', signed(17), 'does not begin with the 17 of this checkpoint'],
    ['of fewer rows', signed(7), 'does not begin with the 7 of this checkpoint'],
    ['of more rows than there are', signed(18), 'of which 17 rows are shown, does not begin with the 18'],
    ['of another secret', signed(7, 'another'.repeat(9)), 'was not signed by this key'],
    ['that is none', 'nothing', 'It is no checkpoint'],
  ])('writes nothing over a file %s that contradicts it', async (_, text, says) => {
    const folder = freshFolder();
    writeFileSync(join(folder, FILE), text);
    const { code, stdout, stderr } = await operator.run(`evidence checkpoints --output ${folder} --json`);
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining(says) });
    expect(stderr).toContain(join(folder, FILE));
    expect((JSON.parse(stdout) as { status: string }[]).map(({ status }) => status).toSorted()).toEqual([
      'contradicted',
      'signed',
    ]);
    expect(readFileSync(join(folder, FILE), 'utf8')).toBe(text);
  });

  it('refuses a tenant that there is not, and a folder that is none', async () => {
    const nobody = randomUUID();
    for (const line of [
      `key --tenant ${nobody}`,
      `checkpoints --tenant ${nobody} --output ${freshFolder()}`,
    ]) {
      const { code, stderr } = await operator.run(`evidence ${line}`);
      expect([code, stderr]).toEqual([4, expect.stringContaining('[tenant_not_found]')]);
    }
    const { code, stderr } = await operator.run(`evidence checkpoints --output ${first}`);
    expect([code, stderr]).toEqual([1, expect.stringContaining('cannot be written')]);
  });

  describe.each(['audit', 'GET /events'])('verify, of an export by %s', (name) => {
    const lines = () => exports[name] as Lines;
    const lineWith = (text: string): number => 1 + lines().findIndex((line) => line.includes(text));

    it('proves all rows, counts second copies and what came later, and needs no service', async () => {
      const checkpoint = openCheckpoint(readFileSync(second!, 'utf8'), key);
      const proven = { code: 0, proven: 16, not_yet_proven: 1, second_copies: 1, size: 16 };
      expect(await verified(lines())).toEqual({ ...proven, root: checkpoint.root.toString('base64') });
      expect(await verified(lines(), first, [])).toMatchObject({ code: 0, proven: 13, not_yet_proven: 4 });
      const text = await operator.run(
        `evidence verify ${written(lines())} --checkpoint ${second} --key ${key}`,
      );
      expect(text).toMatchObject({ code: 0, stdout: expect.stringContaining('proven:') });
      expect(text.stderr).toContain('Second copies of an id, which prove nothing: line 1');
    });

    it('takes an export that was written in parts, and lines that were written again', async () => {
      const [trailer, repeated] = [lines().at(-1) ?? '', lines()[lines().length - 2] ?? ''];
      expect(await verified([...lines(), repeated, ''])).toMatchObject({ code: 0, second_copies: 2 });
      expect(await verified(lines().slice(0, -1))).toMatchObject({ code: 0, proven: 16 });
      const parts = [lines().slice(0, 5), lines().slice(5, -1)].map((part) => resealed([...part, trailer]));
      expect(await verified(parts.flat())).toMatchObject({ code: 0, proven: 16, not_yet_proven: 1 });
    });

    const replaced = (from: string, to: string) => (all: Lines) => {
      const at = all.findIndex((line) => line.includes(from));
      return all.with(at, (all[at] ?? '').replace(from, to));
    };
    const inFacts = (all: Lines): number => all.findIndex((line) => line.includes('tok_5'));
    const alterations: readonly (readonly [string, number, (all: Lines) => Lines])[] = [
      ['a member altered in a later row', 13, replaced('TokenRead', 'TokenUsed')],
      ['a member of its data altered', 0, replaced('"entityId":"tok_5"', '"entityId":"tok_6"')],
      ['its time altered', 0, replaced('"recorded_at":"2', '"recorded_at":"3')],
      ['the digest of a key altered', 0, replaced('"digest_sha256":"', '"digest_sha256":"0')],
      ['a line removed', 0, (all) => all.toSpliced(inFacts(all), 1)],
      [
        'a line inserted',
        0,
        (all) => all.toSpliced(inFacts(all), 0, (all[inFacts(all)] ?? '').replace(/"id":"./, '"id":"x')),
      ],
      [
        'two lines swapped',
        0,
        (all) => all.toSpliced(inFacts(all), 2, all[inFacts(all) + 1] ?? '', all[inFacts(all)] ?? ''),
      ],
      ['its last proven rows removed', 13, (all) => all.toSpliced(-4, 3)],
    ];
    it.each(alterations)('finds %s, whatever the trailer says', async (_, proven, change) => {
      const { code, differences = [], ...found } = await verified(resealed(change(lines())));
      expect({ code, proven: found.proven }).toEqual({ code: 4, proven });
      expect(differences.length).toBeGreaterThan(0);
      // Whoever does not know the trailer is found by it.
      const sloppy = await verified(change(lines()));
      expect(sloppy.differences).toContainEqual({
        line: change(lines()).length,
        what: 'it is not the trailer of the lines before it',
      });
    });

    it('says between which checkpoints rows differ, and which line does not continue its stream', async () => {
      const at = lines().findIndex((each) => each.includes('TokenRead') && each.includes('tok_2'));
      const { differences } = await verified(resealed(lines().toSpliced(at, 1)));
      expect(differences).toEqual([
        expect.objectContaining({
          line: lineWith('TokenRead'),
          what: `the first 16 rows are not those of ${second}; the first 13 agree with another checkpoint`,
        }),
        { line: at + 1, what: 'it has revision 12 of the activity stream, and 11 is next' },
      ]);
    });

    it.each([
      ['trace_id', '"data":', '"trace_id":"x","data":'],
      ['data', '"data":', '"data":0,"data":'],
      ['type', '"version":1', '"version":2'],
    ])('finds a member that says something else than what is proven: %s', async (_, from, to) => {
      const { code, differences = [] } = await verified(resealed(replaced(from, to)(lines())));
      expect([code, differences[0]?.line]).toEqual([4, 1]);
    });

    it('finds a line that continues no stream, beyond the checkpoint', async () => {
      const extra = (lines().at(-2) ?? '').replace(/"id":"./, '"id":"x');
      const all = resealed(lines().toSpliced(-1, 0, extra));
      expect(await verified(all)).toMatchObject({
        code: 4,
        proven: 16,
        not_yet_proven: 2,
        differences: expect.arrayContaining([
          { line: all.length - 1, what: expect.stringMatching(/^it has revision 13 .*, and 14 is next$/) },
        ]),
      });
    });

    it('finds another history', async () => {
      const other = await filled('Other');
      const theirs = name === 'audit' ? await auditLines(other) : await tenantLines(other.folder);
      const { code, proven, differences } = await verified(theirs);
      expect([code, proven, differences?.[0]?.line]).toEqual([4, 0, 1]);
      const text = await other.run(`evidence verify ${written(theirs)} --checkpoint ${first} --key ${key}`);
      expect([text.code, text.stderr]).toEqual([4, expect.stringContaining('Lines 1 to 1')]);
    });
  });

  it('verify finds a checkpoint that was altered, is of another key, or contradicts a larger one', async () => {
    const lines = exports['audit'] as Lines;
    const text = readFileSync(second!, 'utf8');
    const against = async (checkpoint: string, vkey = key) => {
      const file = written([checkpoint.trimEnd()]);
      return operator.run(`evidence verify ${written(lines)} --checkpoint ${file} --key ${vkey}`);
    };
    expect((await against(text)).code).toBe(0);
    for (const altered of [text.replace('\n16\n', '\n15\n'), signed(16, 'another'.repeat(9))]) {
      const { code, stderr } = await against(altered);
      expect([code, stderr]).toEqual([4, expect.stringContaining('[evidence_contradicted]')]);
    }
    const { code, proven } = await verified(lines, second, [first, written([signed(7).trimEnd()])]);
    expect([code, proven]).toEqual([4, 16]);
    for (const unusable of ['nothing', text.replaceAll(TENANT, randomUUID())]) {
      const refused = await against(unusable);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('[file_unreadable]')]);
    }
    expect((await against(text, 'key')).code).toBe(1);
  });

  it.each([
    ['evidence verify', 2],
    ['evidence verify export --key key', 2],
    ['evidence verify export --event event --proof proof --key key', 2],
    ['evidence verify none --checkpoint none --key key', 1],
    ['evidence checkpoints', 2],
  ])('refuses %s', async (line, expected) => {
    const { code, stdout } = await operator.run(line);
    expect([code, stdout]).toEqual([expected, '']);
  });

  it('verify refuses lines that are no events', async () => {
    const line = `evidence verify ${written(['{"id":1}'])} --checkpoint ${second} --key ${key}`;
    const { code, stderr } = await operator.run(line);
    expect([code, stderr]).toEqual([1, expect.stringContaining('Line 1 is no event of an export.')]);
  });

  it('verify proves one event, and no other with its proof', async () => {
    const events = (exports['GET /events'] as Lines).slice(0, -1);
    const app = await openAppIn(operator.folder);
    const { set } = await app.live.look();
    const note = signedCheckpoint({ origin: ORIGIN, ...(await treeOf(set, TENANT)) }, evidenceKey(SECRET));
    const proofOf = async (id: string) => {
      const { index = 0, hashes = [] } = (await inclusionProof(set, TENANT, id)) ?? {};
      return written([proofText(index, hashes, note).trimEnd()]);
    };
    const check = (event: string, proof: string) =>
      operator.run(`evidence verify --event ${written([event])} --proof ${proof} --key ${key} --json`);
    for (const [at, event] of events.slice(0, 13).entries()) {
      const { id } = JSON.parse(event) as { id: string };
      const proof = await proofOf(id);
      const { code, stdout } = await check(JSON.stringify(JSON.parse(event), null, 2), proof);
      expect([code, JSON.parse(stdout)]).toMatchObject([0, { proven: 1, row: at + 1, size: 17 }]);
      const other = await check(events[(at + 1) % 13] ?? '', proof);
      expect([other.code, JSON.parse(other.stdout)]).toMatchObject([
        4,
        { proven: 0, differences: [{ what: `the event is not row ${at + 1} of the log` }] },
      ]);
    }
    const audited = (await operator.run('audit --type KeyAdded')).stdout;
    const { id, tenant_id } = JSON.parse(linesOf(audited)[0] ?? '') as { id: string; tenant_id: string };
    const proof = await proofOf(id);
    expect((await check(audited, proof)).code).toBe(0);
    expect((await check(audited.replaceAll(tenant_id, randomUUID()), proof)).code).toBe(4);
    await app.close();
  });
});
