import { randomUUID } from 'node:crypto';
import { addService } from '../../src/domain/services';
import { monotonicMs } from '../../src/async/clock';
import type { ServiceRight } from '../../src/domain/events';
import { newServiceKey } from '../../src/ledger/api-key';
import { knownServices } from '../../src/ledger/services';
import type { Beside } from './beside';
import { OWNER } from './given';

const operator = { type: 'user', id: OWNER } as const;

export const newService = async (
  { log, streams }: Pick<Beside, 'log' | 'streams'>,
  ...may: readonly ServiceRight[]
) => {
  const services = knownServices({ log, streams }, 0);
  const { key, input } = newServiceKey();
  const id = randomUUID();
  await services.execute(addService({ id, name: 'Gateway', may }, input), operator);
  return {
    id,
    key,
    keyId: input.keyId,
    execute: (decide: Parameters<typeof services.execute>[0]) => services.execute(decide, operator),
    all: () => services.all(monotonicMs() + 10_000),
  };
};
