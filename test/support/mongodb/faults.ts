import type { Document } from 'mongodb';

/** How a command is mistreated. */
export type FaultAction =
  /** The connection is cut, before the command is executed, after it, or after so many of its writes. */
  | { readonly type: 'drop'; readonly when: 'before' | 'after' }
  | { readonly type: 'drop'; readonly when: 'between'; readonly writes: number }
  /** There is never an answer. */
  | { readonly type: 'hang'; readonly when: 'before' | 'after' }
  /** It is executed so much later, also if the client has gone by then. */
  | { readonly type: 'slow'; readonly ms: number }
  /** It is not executed, but refused: 10107 not primary, 11600 shutting down, … */
  | { readonly type: 'error'; readonly code: number; readonly message?: string }
  /** One write of the command fails; the others are made as they would be. */
  | { readonly type: 'writeError'; readonly write: number; readonly code: number; readonly message?: string }
  /** Its writes stop at the first error although they are not ordered, as FerretDB's do. */
  | { readonly type: 'ordered' }
  /** It is executed, and the reply says that the write concern was not satisfied. */
  | { readonly type: 'writeConcernError'; readonly code: number; readonly message?: string };

export interface FaultRule {
  /** Which commands: by name, and by collection (exact, or a regular expression). Without either: all but hello. */
  readonly command?: string | readonly string[];
  readonly collection?: string | RegExp;
  /** In the same process only. */
  readonly when?: (command: Document) => boolean;
  /** So many that fit are left alone first. */
  readonly skip?: number;
  /** So many are mistreated; without a number one, with `Infinity` all until the rule is removed. */
  readonly times?: number;
  readonly action: FaultAction;
}

export interface Faults {
  /** Adds a rule. The first rule that fits a command decides. Returns how to remove it. */
  add(rule: FaultRule): () => void;
  clear(): void;
  /** How many commands have been mistreated. */
  readonly struck: number;
  /** For the server: what happens to this command. */
  next(name: string, collection: string | undefined, command: Document): FaultAction | undefined;
}

const MONITORING = new Set(['hello', 'ismaster', 'isMaster', 'ping', 'buildInfo', 'endSessions']);

const fits = (rule: FaultRule, name: string, collection: string | undefined, command: Document): boolean => {
  if (rule.command === undefined ? MONITORING.has(name) : ![rule.command].flat().includes(name)) return false;
  const { collection: wanted, when } = rule;
  const isThere =
    wanted === undefined ||
    (typeof wanted === 'string' ? collection === wanted : wanted.test(collection ?? ''));
  return isThere && (when === undefined || when(command));
};

export const faultRules = (): Faults => {
  const rules: { readonly rule: FaultRule; skip: number; left: number }[] = [];
  let struck = 0;
  return {
    add: (rule) => {
      const entry = { rule, skip: rule.skip ?? 0, left: rule.times ?? 1 };
      rules.push(entry);
      return () => {
        const at = rules.indexOf(entry);
        if (at >= 0) rules.splice(at, 1);
      };
    },
    clear: () => void rules.splice(0),
    get struck() {
      return struck;
    },
    next: (name, collection, command) => {
      for (const entry of rules) {
        if (entry.left <= 0 || !fits(entry.rule, name, collection, command)) continue;
        if (entry.skip > 0) {
          entry.skip -= 1;
          continue;
        }
        entry.left -= 1;
        struck += 1;
        return entry.rule.action;
      }
      return undefined;
    },
  };
};
