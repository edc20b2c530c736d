import { Command, InvalidArgumentError, Option } from 'commander';
import { applicationTypes } from '../domain/permissions';
import { parseBound, parseMoment, uuidFrom } from '../domain/texts';
import type { Io } from './io';

/** Makes a parser of arguments. What `read` has no value for is refused with the rule. */
export const parser =
  <T>(rule: string, read: (text: string) => T | undefined) =>
  (text: string): T => {
    const value = read(text);
    if (value === undefined) throw new InvalidArgumentError(rule);
    return value;
  };

export const uuid = parser('It must be a UUID, for example 7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11.', uuidFrom);

export const wholeNumber = (least = 0, most = Infinity, limits = `${least} or more`) =>
  parser(`It must be a whole number, ${limits}.`, (text) => {
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : NaN;
    return value >= least && value <= most ? value : undefined;
  });

const TIME = 'It must be a time like 2031-01-31T12:00:00Z, or a date like 2031-01-31.';
export const moment = parser(TIME, parseMoment);
export const bound = parser(TIME, parseBound);

export const collected = (text: string, before: readonly string[] = []) => [...before, text];

/** The values of the options below. */
export interface JsonOption {
  readonly json?: boolean;
}
export interface YesOption {
  readonly yes?: boolean;
}
export interface ActorOptions extends JsonOption {
  readonly actor?: string;
}
export interface TenantOptions extends ActorOptions {
  readonly tenant: string;
}

/** The options that several commands have. */
export const option = {
  json: () => new Option('--json', 'print JSON on stdout'),
  yes: () => new Option('--yes', 'do not ask for confirmation'),
  tenant: () => new Option('--tenant <uuid>', 'the tenant').argParser(uuid).makeOptionMandatory(),
  actor: () =>
    new Option('--actor <uuid>', 'the actor in the audit log (default: OPERATOR_ID)').argParser(uuid),
  type: () => new Option('--type <type>', 'the application type').choices(applicationTypes),
};

/** Makes a command, whose action then writes to `io`. */
export type MakeCommand = (io: Io) => Command;

/** A command that consists of commands. */
export const commandGroup =
  (name: string, description: string, commands: readonly MakeCommand[]): MakeCommand =>
  (io) => {
    const group = new Command(name).description(description).helpCommand(false);
    for (const makeCommand of commands) group.addCommand(makeCommand(io));
    return group;
  };
