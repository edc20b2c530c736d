import { invalid } from './invalid';

/** Unknown parameters are ignored; repeated ones and `name[…]` are refused, because they mean something elsewhere. */
export const queryOf = (querystring: string): ReadonlyMap<string, string> => {
  const query = new Map<string, string>();
  if (querystring === '') return query;
  for (const [name, value] of new URLSearchParams(querystring)) {
    if (name.includes('[')) throw invalid({ [name]: ['must be a plain parameter without brackets'] });
    if (query.has(name)) throw invalid({ [name]: ['must be given at most once'] });
    query.set(name, value);
  }
  return query;
};
