import { Command, InvalidArgumentError } from 'commander';
import { readModelStoreOf, storeOf } from '../app/log-address';
import {
  isSecret,
  readConfiguration,
  settingNames,
  settings,
  type Configuration,
  type SettingName,
} from '../configuration';
import { isProblemCode, problems, type ProblemCode } from '../problems';
import { jsonOption, type JsonOption } from './arguments';
import { printMany, printOne } from './output';
import type { Io } from './io';

/** Commands that need no data. */

const knownCode = (code: string): ProblemCode => {
  if (isProblemCode(code)) return code;
  throw new InvalidArgumentError(`The codes are ${Object.keys(problems).join(', ')}.`);
};

export const explainCommand = (io: Io): Command =>
  new Command('explain')
    .description('explain an error code and say what to do')
    .argument('<code>', 'the code, for example key_refused', knownCode)
    .addOption(jsonOption())
    .action((code: ProblemCode, options: JsonOption) => {
      const { status, title, meaning } = problems[code];
      printOne(io, { code, status: status ?? null, title, meaning }, options);
    });

/** Secrets are masked; of the URL of a store only the servers are shown. */
const shownValue = (name: SettingName, values: Configuration): string | number | boolean => {
  if (!isSecret(name) || values[name] === '') return values[name];
  if (name === 'EVENTSTORE_URL') return storeOf(values);
  return name === 'MONGODB_URL' ? readModelStoreOf(values) : '(set)';
};

export const configCommand = (io: Io): Command =>
  new Command('config')
    .description('show every setting, where its value comes from, and what it means')
    .addOption(jsonOption())
    .action((options: JsonOption) => {
      const values = readConfiguration(io.env);
      const rows = settingNames.map((name) => ({
        name,
        value: shownValue(name, values),
        source: (io.env[name] ?? '') === '' ? 'default' : 'environment',
        meaning: settings[name].meaning,
      }));
      printMany(io, rows, options);
    });
