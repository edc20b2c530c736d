import { Command } from 'commander';
import { copyCommand } from './log-copy-command';
import { verifyCommand } from './log-verify-command';

export const logCommands = (): Command =>
  new Command('log')
    .description('work on the event log itself')
    .addCommand(copyCommand())
    .addCommand(verifyCommand());
