/** What only the command line refuses: rows of the table in problems.ts. */
export const commandProblems = {
  data_not_found: {
    title: 'There is no data in this folder.',
    meaning:
      'Commands make no data folder of their own, so that a wrong one is noticed. Set `DATA_DIR` to the folder of the service, or run the command where the service was started.',
  },
  not_confirmed: {
    title: 'This must be confirmed.',
    meaning: 'It cannot be undone. Confirm it on a terminal, or give `--yes`.',
  },
  file_unreadable: { title: 'A file cannot be read.', meaning: 'Check the name and who may read it.' },
  code_unknown: {
    title: 'There is no such error code.',
    meaning: 'All of them are listed in docs/errors.md.',
  },
  wrong_usage: {
    title: 'The command was not used rightly.',
    meaning: 'Add `--help` to the command to see its arguments and options. The exit code is 2.',
  },
  output_failed: {
    title: 'The output could not be written.',
    meaning: 'What stdout leads to is full or broken. What the command changed is changed.',
  },
};
