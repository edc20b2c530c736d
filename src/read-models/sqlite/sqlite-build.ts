import type { Build, DocumentKey } from '../read-models';
import { keyFilter, type KeyFilter } from '../../event-log/key-filter';
import type { Send, SqliteGeneration } from './sqlite-generation';

/**
 * A build that started empty remembers its keys in a filter: a document that the filter does not have need not be looked
 * up, and is appended to a heap without keys. Once another process may have written, the filter is dropped.
 */
export const sqliteBuild = async (generation: SqliteGeneration, send: Send): Promise<Build> => {
  let { n: expected } = await generation.control();
  let written: KeyFilter | undefined = expected === 0 ? keyFilter() : undefined;

  const isNew = (key: DocumentKey): boolean => written?.add(key) ?? false;

  const load: Build['load'] = async (keys) => {
    const filter = written;
    const mayExist = keys.map((key) => filter?.mayHave(key) ?? true);
    const wanted = keys.filter((_, i) => mayExist[i]);
    if (wanted.length === 0) return keys.map(() => undefined);
    const found = await generation.load(wanted);
    let at = 0;
    return mayExist.map((isWanted) => (isWanted ? found[at++] : undefined));
  };

  return {
    id: generation.id,
    maxCommitBytes: generation.maxCommitBytes,
    scan: generation.scan,
    control: async () => {
      const control = await generation.control();
      if (control.n !== expected) written = undefined;
      return control;
    },
    load,
    commit: async (n, to, writes) => {
      if (n !== expected) written = undefined;
      try {
        const isDone = await generation.commitAs(n, to, writes, isNew);
        if (isDone) expected = n + 1;
        else written = undefined;
        return isDone;
      } catch (error) {
        written = undefined;
        throw error;
      }
    },
    finish: async () => {
      await send({ do: 'finish', id: generation.id });
      return generation;
    },
  };
};
