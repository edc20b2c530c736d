import type { Command } from 'commander';
import { commandGroup } from '../arguments';
import { copyCommand } from './copy-command';
import { verifyCommand } from './verify-command';
import type { Io } from '../io';

export const logCommands = (io: Io): Command =>
  commandGroup('log', 'work on the event log itself', [copyCommand(io), verifyCommand(io)]);
