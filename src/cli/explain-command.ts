import { Command, InvalidArgumentError } from 'commander';
import { isProblemCode, problems, type ProblemCode } from '../problems';
import { option, type JsonOption } from './arguments';
import type { Io } from './io';
import { printOne } from './output';

const knownCode = (code: string): ProblemCode => {
  if (isProblemCode(code)) return code;
  throw new InvalidArgumentError(`The codes are ${Object.keys(problems).join(', ')}.`);
};

export const explainCommand = (io: Io): Command =>
  new Command('explain')
    .description('explain an error code and say what to do')
    .argument('<code>', 'the code, for example key_refused', knownCode)
    .addOption(option.json())
    .action((code: ProblemCode, options: JsonOption) => {
      const { status, title, meaning } = problems[code];
      printOne(io, { code, status: status ?? null, title, meaning }, options);
    });
