import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { campaigns } from '../campaigns';
import { command, startService, type Service } from '../support/service';
import { shellWords } from '../support/shell-words';

const ROOT = join(__dirname, '..', '..', '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const run = promisify(execFile);

const shellLines = (heading: string): readonly string[] => {
  const section = README.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap((match) =>
    (match[1] ?? '').trim().split('\n'),
  );
};

describe('the README', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService();
  });

  /** As a reader would run it, except for the ports. */
  const requested = async (line: string): Promise<string> => {
    const here = line
      .replaceAll('http://127.0.0.1:8080', service.url)
      .replaceAll('http://127.0.0.1:8081', service.operationsUrl)
      .replace(/^curl /, 'curl --fail-with-body ');
    const env = { PATH: process.env['PATH'], KEY: service.key };
    return (await run('sh', ['-c', here], { env, cwd: ROOT })).stdout;
  };

  const commanded = async (line: string): Promise<string> => {
    const words = await shellWords(line.replace(/^npx tenant-ledger /, ''));
    const { code, stdout, stderr } = await command(words, { DATA_DIR: service.folder });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  };

  it.each(shellLines('Use'))('works as written: %s', async (line) => {
    const isCommand = line.startsWith('npx tenant-ledger ');
    expect(await (isCommand ? commanded(line) : requested(line))).not.toBe('');
  });

  it('lists every campaign', () => {
    const listed = Array.from(
      README.matchAll(/^\| `npm run campaign -- ([a-z-]+)`/gm),
      ([, name = '']) => name,
    );
    expect(listed.toSorted()).toEqual(Object.keys(campaigns).toSorted());
  });

  it('lists the folders that exist, all of them', () => {
    const section = README.split('\n## Project layout\n')[1]?.split('\n## ')[0] ?? '';
    const rows = section.split('\n').filter((line) => line.startsWith('| `'));
    const listed = rows.flatMap((row) =>
      [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map((m) => m[1] ?? ''),
    );
    expect(listed.filter((place) => !existsSync(join(ROOT, place)))).toEqual([]);
    const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `src/${name}`);
    expect(listed).toEqual(expect.arrayContaining(['projections', ...folders]));
  });
});
