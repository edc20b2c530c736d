import { Command } from 'commander';
import { createBackup, restoreBackup, verifyBackup, type BackedUp, type OnProgress } from '../app/backups';
import { readConfiguration } from '../configuration';
import { commandGroup, jsonOption, type JsonOption } from './arguments';
import { ignoreCtrlZ, printOne } from './output';
import { withProgress } from './progress';
import type { Io } from './io';

const view = (backup: string, { identity, events, lastPosition, lastRecordedAt, chain }: BackedUp) => ({
  backup,
  identity,
  events,
  last_position: lastPosition ?? null,
  last_recorded_at: lastRecordedAt ?? null,
  chain,
});

const withSteps = <T>(io: Io, title: string, work: (onProgress: OnProgress) => Promise<T>): Promise<T> =>
  withProgress(io, title, ({ showStep }) => work(showStep));

const create = (io: Io): Command =>
  new Command('create')
    .description('back up the event log of DATA_DIR, even while it is being written')
    .argument('<folder>', 'an empty folder, or that of an earlier backup, to which new events are added')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
What is in the log when the command begins is copied, read again from the copy and compared. It can be killed and run
again at any time. Read models are not part of a backup: they are built again from the log.`,
    )
    .action(async (folder: string, options: JsonOption) => {
      const configuration = readConfiguration(io.env);
      ignoreCtrlZ(io);
      const { added, ...backedUp } = await withSteps(io, 'Backing up:', (onProgress) =>
        createBackup(configuration, folder, onProgress),
      );
      printOne(io, { ...view(folder, backedUp), events_added: added }, options);
    });

const verify = (io: Io): Command =>
  new Command('verify')
    .description('read a whole backup and compare it with its manifest; exit code 1 if anything differs')
    .argument('<folder>', 'the backup')
    .addOption(jsonOption())
    .action(async (folder: string, options: JsonOption) => {
      const backedUp = await withSteps(io, 'Verifying:', (onProgress) => verifyBackup(folder, onProgress));
      printOne(io, view(folder, backedUp), options);
    });

const restore = (io: Io): Command =>
  new Command('restore')
    .description('verify a backup and restore it into DATA_DIR, which must be empty')
    .argument('<folder>', 'the backup')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The next start builds the read models from the restored log. Everything that was acknowledged after the backup is gone:
the output says up to when it reaches.`,
    )
    .action(async (folder: string, options: JsonOption) => {
      const configuration = readConfiguration(io.env);
      ignoreCtrlZ(io);
      const restored = await withSteps(io, 'Restoring:', (onProgress) =>
        restoreBackup(configuration, folder, onProgress),
      );
      printOne(io, { data_dir: configuration.DATA_DIR, ...view(folder, restored) }, options);
    });

export const backupCommands = (io: Io): Command =>
  commandGroup('backup', 'back up and restore the event log of DATA_DIR', [
    create(io),
    verify(io),
    restore(io),
  ]);
