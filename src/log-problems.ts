/** What can be wrong with an event log, or with copying one: rows of the table in problems.ts. They never leave through HTTP. */
export const logProblems = {
  log_of_another_prefix: {
    title: 'The event log has another stream prefix.',
    meaning:
      "A log in a data folder belongs to the `STREAM_PREFIX` that it was made with: with another one, its events would count as somebody else's. The sentence names both. Correct `STREAM_PREFIX` or `DATA_DIR` (for `log` commands the option that names the prefix). Nothing was changed.",
  },
  log_incomplete: {
    title: 'The event log is not complete.',
    meaning:
      'The folder holds traces of an event log, but not the whole of it: `events.db` is missing, empty or without its tables. Restore `events.db` from a backup, together with its `-wal` file if the backup has one. To begin with an empty log instead, move what is left of it and the folder `read-models` out of `DATA_DIR`. Nothing was changed.',
  },
  log_not_found: {
    title: 'There is no event log at this address.',
    meaning:
      'Name a data folder that holds an event log by its path or as `sqlite:PATH`, an event store as `esdb://HOST:PORT`, or `configured` for the log that the environment names.',
  },
  copy_refused: {
    title: 'This cannot be copied.',
    meaning:
      'The sentence says why: an empty source, the same log twice, or an event that the target could not keep as it is. What was copied before is safe.',
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
  history_missing: {
    title: 'Events of a stream were removed from the event store.',
    meaning:
      "Somebody has deleted or truncated the stream that the sentence names. Waiting does not help: the events are only to be had from a backup of the event store. For a tenant's own stream the service says `tenant_unreadable`.",
  },
};
