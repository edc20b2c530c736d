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

type Backups = Pick<typeof import('../app/backups'), 'createBackup' | 'restoreBackup' | 'verifyBackup'>;
type Work = (backups: Backups, folder: string, onProgress: OnProgress) => BackedUp;

const backupCommand = (io: Io, name: string, title: string, work: Work, more: () => object = () => ({})) =>
  new Command(name).addOption(option.json()).action(async (folder: string, options: JsonOption) => {
    const { createBackup, restoreBackup, verifyBackup } = require('../app/backups') as Backups;
    const backups = { createBackup, restoreBackup, verifyBackup };
    const done = await withProgress(io, title, async ({ show }) =>
      work(backups, folder, (events) => show(`${events} events verified`)),
    );
    printOne(io, { ...more(), ...view(folder, done) }, options);
  });

const create = (io: Io): Command =>
  backupCommand(io, 'create', 'Backing up:', ({ createBackup }, ...to) =>
    createBackup(readConfiguration(io.env), ...to),
  )
    .description('back up the event log of DATA_DIR, even while it is being written')
    .argument('<folder>', 'an empty folder, or that of an earlier backup of this log, which is replaced')
    .addHelpText(
      'after',
      `
What is in the log when the command begins is copied, read again from the copy and compared; then it takes the place of
the earlier backup. Read models are not part of a backup: they are built again from the log.`,
    );

const verify = (io: Io): Command =>
  backupCommand(io, 'verify', 'Verifying:', ({ verifyBackup }, ...of) => verifyBackup(...of))
    .description('read a whole backup and compare it with its checksum; exit code 1 if it differs')
    .argument('<folder>', 'the backup');

const restore = (io: Io): Command =>
  backupCommand(
    io,
    'restore',
    'Restoring:',
    ({ restoreBackup }, ...from) => restoreBackup(readConfiguration(io.env), ...from),
    () => ({ data_dir: readConfiguration(io.env).DATA_DIR }),
  )
    .description('restore a backup into DATA_DIR, which must be empty, and verify it there')
    .argument('<folder>', 'the backup')
    .addHelpText(
      'after',
      `
The next start builds the read models from the restored log. Everything that was acknowledged after the backup is gone:
the output says up to when it reaches.`,
    );

const BACKUPS = 'back up and restore the event log of DATA_DIR';
export const backupCommands = commandGroup('backup', BACKUPS, [create, verify, restore]);
