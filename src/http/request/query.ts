import { invalid } from './invalid';

const NOTHING: ReadonlyMap<string, string> = new Map();

/** Unknown parameters are ignored; repeated ones and `name[…]` are refused, because they mean something elsewhere. */
export const queryOf = (querystring: string): ReadonlyMap<string, string> => {
  if (querystring === '') return NOTHING;
  const query = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(querystring)) {
    if (name.includes('[')) throw invalid({ [name]: ['must be a plain parameter without brackets'] });
    if (query.has(name)) throw invalid({ [name]: ['must be given at most once'] });
    query.set(name, value);
  }
  return query;
};
