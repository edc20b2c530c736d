import { Command } from 'commander';
import { option, type JsonOption } from './arguments';
import type { Io } from './io';
import { printJson, visible } from './output';

export const doctorCommand = (io: Io): Command =>
  new Command('doctor')
    .description(
      'check the configuration, the stores and the read models, and say what to do; exit code 1 if anything is wrong',
    )
    .addOption(option.json())
    .action(async ({ json }: JsonOption) => {
      const { diagnose } = require('../app/doctor') as typeof import('../app/doctor');
      const findings = await diagnose(io.env);
      if (findings.some(({ status }) => status === 'problem')) io.exitCode = 1;
      if (json === true) return printJson(io, findings);
      const width = Math.max(...findings.map(({ check }) => check.length));
      for (const { check, status, finding, fix } of findings) {
        io.stdout.write(`${status.padEnd(8)} ${check.padEnd(width)}  ${visible(finding)}\n`);
        if (fix !== undefined) io.stdout.write(`${' '.repeat(8 + 1 + width + 2)}Fix: ${visible(fix)}\n`);
      }
    });
