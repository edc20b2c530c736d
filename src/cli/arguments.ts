import { Command, InvalidArgumentError, Option } from 'commander';
import { applicationTypes } from '../domain/permissions';
import { parseBound, parseMoment, uuidFrom } from '../domain/texts';
import type { Io } from './io';

export const uuid = (text: string): string => {
  const id = uuidFrom(text);
  if (id === undefined)
    throw new InvalidArgumentError('It must be a UUID, for example 7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11.');
  return id;
};

export const wholeNumber = (text: string): number => {
  if (!/^[0-9]{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, 0 or more.');
  return Number(text);
};

const timeParser =
  (parse: (text: string) => string | undefined) =>
  (text: string): string => {
    const parsed = parse(text);
    if (parsed === undefined)
      throw new InvalidArgumentError(
        'It must be a time like 2031-01-31T12:00:00Z, or a date like 2031-01-31.',
      );
    return parsed;
  };

export const moment = timeParser(parseMoment);
export const bound = timeParser(parseBound);

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
