import { Command } from 'commander';
import type { BackedUp, OnProgress } from '../app/backups';
import { readConfiguration } from '../configuration';
import { commandGroup, option, type JsonOption } from './arguments';
import type { Io } from './io';
import { printOne } from './output';
import { withProgress } from './progress';

const view = (backup: string, { identity, events, lastPosition, lastRecordedAt, checksum }: BackedUp) => ({
  backup,
  identity,
  events,
  last_position: lastPosition ?? null,
  last_recorded_at: lastRecordedAt ?? null,
  checksum,
});

const counting = (io: Io, title: string, work: (onProgress: OnProgress) => BackedUp): Promise<BackedUp> =>
  withProgress(io, title, async ({ show }) => work((events) => show(`${events} events verified`)));

const create = (io: Io): Command =>
  new Command('create')
    .description('back up the event log of DATA_DIR, even while it is being written')
    .argument('<folder>', 'an empty folder, or that of an earlier backup of this log, which is replaced')
    .addOption(option.json())
    .addHelpText(
      'after',
      `
What is in the log when the command begins is copied, read again from the copy and compared; then it takes the place of
the earlier backup. Read models are not part of a backup: they are built again from the log.`,
    )
    .action(async (folder: string, options: JsonOption) => {
      const { createBackup } = require('../app/backups') as typeof import('../app/backups');
      const configuration = readConfiguration(io.env);
      const created = await counting(io, 'Backing up:', (onProgress) =>
        createBackup(configuration, folder, onProgress),
      );
      printOne(io, view(folder, created), options);
    });

const verify = (io: Io): Command =>
  new Command('verify')
    .description('read a whole backup and compare it with its checksum; exit code 1 if it differs')
    .argument('<folder>', 'the backup')
    .addOption(option.json())
    .action(async (folder: string, options: JsonOption) => {
      const { verifyBackup } = require('../app/backups') as typeof import('../app/backups');
      const verified = await counting(io, 'Verifying:', (onProgress) => verifyBackup(folder, onProgress));
      printOne(io, view(folder, verified), options);
    });

const restore = (io: Io): Command =>
  new Command('restore')
    .description('restore a backup into DATA_DIR, which must be empty, and verify it there')
    .argument('<folder>', 'the backup')
    .addOption(option.json())
    .addHelpText(
      'after',
      `
The next start builds the read models from the restored log. Everything that was acknowledged after the backup is gone:
the output says up to when it reaches.`,
    )
    .action(async (folder: string, options: JsonOption) => {
      const { restoreBackup } = require('../app/backups') as typeof import('../app/backups');
      const configuration = readConfiguration(io.env);
      const restored = await counting(io, 'Restoring:', (onProgress) =>
        restoreBackup(configuration, folder, onProgress),
      );
      printOne(io, { data_dir: configuration.DATA_DIR, ...view(folder, restored) }, options);
    });

const BACKUPS = 'back up and restore the event log of DATA_DIR';
export const backupCommands = commandGroup('backup', BACKUPS, [create, verify, restore]);
