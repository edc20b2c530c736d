import type { Document } from 'mongodb';

/** What happens to a command on its way to the server, or to its reply. */
export type FaultAction =
  /** Cuts the connection before the command reaches the server, or when the server has replied. */
  | { readonly type: 'drop'; readonly when: 'before' | 'after' }
  /** Delivers nothing, and keeps the connection open. */
  | { readonly type: 'hang' }
  /** Delivers the command this much later, or the reply to it. */
  | { readonly type: 'slow'; readonly ms: number; readonly when?: 'before' | 'after' }
  /** Replies with this error instead of the server, which does not get the command. */
  | { readonly type: 'error'; readonly code: number };

export interface FaultRule {
  /** Which commands: by name, and by collection (exact, or a regular expression). Without either: all but hello. */
  readonly command?: string | readonly string[];
  readonly collection?: string | RegExp;
  readonly when?: (command: Document) => boolean;
  /** How many are affected; one by default, with `Infinity` all until the rule is removed. */
  readonly times?: number;
  readonly first?: () => Promise<unknown>;
  readonly action: FaultAction;
}

export interface Faults {
  add(rule: FaultRule): () => void;
  clear(): void;
  readonly affected: number;
  /** For the proxy: what happens to this command. */
  next(name: string, collection: string, command: Document): FaultRule | undefined;
}

/** Commands that a driver sends by itself. */
export const MONITORING: ReadonlySet<string> = new Set([
  '',
  'hello',
  'ismaster',
  'isMaster',
  'ping',
  'buildInfo',
  'endSessions',
]);

const fits = (rule: FaultRule, name: string, collection: string, command: Document): boolean => {
  if (rule.command === undefined ? MONITORING.has(name) : ![rule.command].flat().includes(name)) return false;
  const { collection: wanted, when } = rule;
  const isThere =
    wanted === undefined || (typeof wanted === 'string' ? collection === wanted : wanted.test(collection));
  return isThere && (when === undefined || when(command));
};

export const faultRules = (): Faults => {
  const rules: { readonly rule: FaultRule; left: number }[] = [];
  let affected = 0;
  return {
    add: (rule) => {
      const entry = { rule, left: rule.times ?? 1 };
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
        entry.left -= 1;
        affected += 1;
        return entry.rule;
      }
      return undefined;
    },
  };
};
