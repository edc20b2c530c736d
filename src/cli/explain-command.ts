import { Command } from 'commander';
import { isProblemCode, problems, type ProblemCode } from '../problems';
import { option, parser, type JsonOption } from './arguments';
import type { Io } from './io';
import { printOne } from './output';

const knownCode = parser(`The codes are ${Object.keys(problems).join(', ')}.`, (code) =>
  isProblemCode(code) ? code : undefined,
);

export const explainCommand = (io: Io): Command =>
  new Command('explain')
    .description('explain an error code and say what to do')
    .argument('<code>', 'the code, for example key_refused', knownCode)
    .addOption(option.json())
    .action((code: ProblemCode, options: JsonOption) => {
      const { status, title, meaning } = problems[code];
      printOne(io, { code, status: status ?? null, title, meaning }, options);
    });
