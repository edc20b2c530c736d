import { Command } from 'commander';
import { settingNames, settings } from '../configuration';

const settingsHelp = (): string => {
  const width = Math.max(...settingNames.map((name) => name.length)) + 2;
  const rows = settingNames.map((name) => {
    const { meaning, fallback } = settings[name];
    return `  ${name.padEnd(width)}${meaning}${fallback === '' ? '' : ` Default: ${fallback}.`}`;
  });
  return `\nEnvironment:\n${rows.join('\n')}\n`;
};

/** What serving needs is loaded when it is asked for: every other command starts twice as fast. */
export const serveCommand = (): Command =>
  new Command('serve')
    .description('serve the API and the operations listener until SIGTERM or SIGINT')
    .addHelpText('after', settingsHelp())
    .action(async () => (await import('./serve.js')).serve());
