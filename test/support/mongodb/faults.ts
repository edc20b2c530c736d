import type { Document } from 'mongodb';

/** What a fault does to a command. */
export type FaultAction =
  /** Cuts the connection before the command is executed, after it, or after this many of its writes. */
  | { readonly type: 'drop'; readonly when: 'before' | 'after' }
  | { readonly type: 'drop'; readonly when: 'between'; readonly writes: number }
  /** Never replies. */
  | { readonly type: 'hang'; readonly when: 'before' | 'after' }
  /** Executes it this much later, even if the client has disconnected by then. */
  | { readonly type: 'slow'; readonly ms: number }
  /** Refuses it without executing it: 10107 not primary, 11600 shutting down, … */
  | { readonly type: 'error'; readonly code: number; readonly message?: string }
  /** Fails one write of the command; the others are made as usual. */
  | { readonly type: 'writeError'; readonly write: number; readonly code: number; readonly message?: string }
  /** Stops its writes at the first error although they are unordered, as FerretDB does. */
  | { readonly type: 'ordered' }
  /** Executes it, and replies that the write concern was not satisfied. */
  | { readonly type: 'writeConcernError'; readonly code: number; readonly message?: string };

export interface FaultRule {
  /** Which commands: by name, and by collection (exact, or a regular expression). Without either: all but hello. */
  readonly command?: string | readonly string[];
  readonly collection?: string | RegExp;
  /** In the same process only. */
  readonly when?: (command: Document) => boolean;
  /** How many matching commands are left alone first. */
  readonly skip?: number;
  /** How many are affected; one by default, with `Infinity` all until the rule is removed. */
  readonly times?: number;
  readonly action: FaultAction;
}

export interface Faults {
  /** Adds a rule. The first rule that matches a command applies. Returns a function that removes it. */
  add(rule: FaultRule): () => void;
  clear(): void;
  /** How many commands have been affected. */
  readonly affected: number;
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
  let affected = 0;
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
    get affected() {
      return affected;
    },
    next: (name, collection, command) => {
      for (const entry of rules) {
        if (entry.left <= 0 || !fits(entry.rule, name, collection, command)) continue;
        if (entry.skip > 0) {
          entry.skip -= 1;
          continue;
        }
        entry.left -= 1;
        affected += 1;
        return entry.rule.action;
      }
      return undefined;
    },
  };
};
