/** What can become of copying an event log: rows of the table in problems.ts. They never leave through HTTP. */
export const copyProblems = {
  copy_refused: {
    title: 'This cannot be copied.',
    meaning:
      'The sentence says why: an address that names no event log, an empty source, the same log twice, or an event that the target could not keep as it is. What was copied before is safe.',
  },
  copy_differs: {
    title: 'The target is not a copy of this source.',
    meaning:
      'It holds other events, or something else writes there. The sentence names the first difference. A log cannot be changed: begin with an empty target.',
  },
  copy_source_grows: {
    title: 'The source is still being written.',
    meaning:
      'Stop what writes there and run the same command again: it goes on from where it is. `--follow-until-quiet` copies along meanwhile.',
  },
};
