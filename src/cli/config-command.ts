import { Command } from 'commander';
import * as configuration from '../configuration';
import { option, type JsonOption } from './arguments';
import type { Io } from './io';
import { printMany } from './output';

/** Secrets are masked; of the URL of a store only the servers are shown. */
const shownValue = (name: configuration.SettingName, values: configuration.Configuration) => {
  if (!configuration.isSecret(name) || values[name] === '') return values[name];
  const { readModelStoreOf, storeOf } = require('../app/log-address') as typeof import('../app/log-address');
  if (name === 'EVENTSTORE_URL') return storeOf(values);
  return name === 'MONGODB_URL' ? readModelStoreOf(values) : '(set)';
};

export const configCommand = (io: Io): Command =>
  new Command('config')
    .description('show every setting, where its value comes from, and what it means')
    .addOption(option.json())
    .action((options: JsonOption) => {
      const values = configuration.readConfiguration(io.env);
      const rows = configuration.settingNames.map((name) => ({
        name,
        value: shownValue(name, values),
        source: (io.env[name] ?? '') === '' ? 'default' : 'environment',
        meaning: configuration.settings[name].meaning,
      }));
      printMany(io, rows, options);
    });
