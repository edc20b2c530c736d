import type { Command } from 'commander';
import { commandGroup } from './arguments';
import { copyCommand } from './log-copy-command';
import { upgradeCommand } from './log-upgrade-command';
import { verifyCommand } from './log-verify-command';

export const logCommands = (): Command =>
  commandGroup('log', 'work on the event log itself', [copyCommand(), upgradeCommand(), verifyCommand()]);
