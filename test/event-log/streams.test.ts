import { randomUUID } from 'node:crypto';
import { streamNames } from '../../src/event-log/streams';

describe('stream names', () => {
  const id = randomUUID();

  it.each(['', 'ledger-', 'a.b*', 'tenant-', '$'])(
    'are parsed from their text, with the prefix "%s"',
    (prefix) => {
      const streams = streamNames(prefix);
      expect(streams.tenant(id)).toBe(`${prefix}tenant-${id}`);
      expect(streams.activity(id)).toBe(`${prefix}activity-${id}`);
      expect(streams.parse(streams.tenant(id))).toEqual({ kind: 'tenant', tenantId: id });
      expect(streams.parse(streams.activity(id))).toEqual({ kind: 'activity', tenantId: id });
    },
  );

  it.each([
    '',
    'tenant',
    'tenant-',
    `tenant-${id}-`,
    `tenant-${id}0`,
    `tenant-${id.slice(0, -1)}`,
    `tenant-${id}-copy`,
    `xtenant-${id}`,
    `tenant-${id}\n`,
    ` tenant-${id}`,
    `tenants-${id}`,
    `tenant-${id.toUpperCase()}`,
    `tenant-${id.replaceAll('-', '')}`,
    `Tenant-${id}`,
    `other-tenant-${id}`,
    `operator`,
    `$ce-tenant-${id}`,
    id,
  ])('are matched whole: "%s" is not one of ours', (stream) => {
    expect(streamNames().parse(stream)).toBeUndefined();
    expect(streamNames().holds(stream)).toBe(stream === 'operator');
  });

  it('of one prefix are foreign to another', () => {
    const [plain, one, other] = [streamNames(), streamNames('one-'), streamNames('other-')];
    expect(plain.parse(one.tenant(id))).toBeUndefined();
    expect(one.parse(plain.tenant(id))).toBeUndefined();
    expect(one.parse(other.tenant(id))).toBeUndefined();
    expect(one.holds(other.operator())).toBe(false);
    expect(streamNames('on').parse(one.tenant(id))).toBeUndefined();
  });

  it('take a prefix literally, not as a pattern', () => {
    expect(streamNames('a.').parse(`ab${streamNames().tenant(id)}`)).toBeUndefined();
  });

  it.each(['', 'ledger.'])(
    'tell with the prefix %j which streams hold history, and how their names start',
    (prefix) => {
      const streams = streamNames(prefix);
      const ours = [streams.tenant(id), streams.activity(id), streams.operator()];
      for (const name of ours) {
        expect(streams.holds(name)).toBe(true);
        expect(streams.prefixes().some((beginning) => name.startsWith(beginning))).toBe(true);
      }
      const others = [
        streams.log(),
        `${streams.tenant(id)}x`,
        `x${streams.tenant(id)}`,
        `${streams.operator()}s`,
        '',
      ];
      for (const name of others) expect(streams.holds(name)).toBe(false);
      expect(streams.log()).toBe(`${prefix}log`);
    },
  );
});
