/** What can be wrong with read models as a whole: rows of the table in problems.ts. They never leave through HTTP. */
export const readModelProblems = {
  rebuild_running: {
    title: 'This projection is being rebuilt already.',
    meaning:
      'Wait for it, or end the process that the sentence names. `tenant-ledger projections status` shows how far it is.',
  },
  rebuild_differs: {
    title: 'The rebuilt read model differs from the live one.',
    meaning:
      'It was not switched to, because `--if-equal` was given. `tenant-ledger projections verify` names every difference; without `--if-equal` the rebuild is switched to.',
  },
  rebuild_parks: {
    title: 'The rebuild parks a tenant that the live read model does not park.',
    meaning: 'It was not switched to. Look at the named tenants; `--accept-parked` switches all the same.',
  },
  nothing_to_roll_back_to: {
    title: 'There is no previous generation.',
    meaning: 'A rollback needs the generation before the last switch; it is there until it is pruned.',
  },
  read_models_of_another_log: {
    title: 'The read models belong to another event log.',
    meaning:
      '`EVENTSTORE_URL`, `STREAM_PREFIX` or `DATA_DIR` is not what it was when they were made: correct it. Only if this log is meant, move the folder `read-models` out of `DATA_DIR` and start again: they are rebuilt from the log.',
  },
};
