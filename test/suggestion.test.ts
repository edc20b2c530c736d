import { suggestionFor } from '../src/fault';

const known = ['name', 'settings', 'permissions', 'expires_at', 'grace_seconds'];

describe('the nearest name', () => {
  it.each([
    ['setings', 'settings'],
    ['permisions', 'permissions'],
    ['Permissions', 'permissions'],
    ['expires_in', 'expires_at'],
    ['expiresAt', 'expires_at'],
    ['grace', 'grace_seconds'],
    ['nam', 'name'],
    ['nmae', undefined],
    ['x', undefined],
    ['', undefined],
    ['rules', undefined],
    ['constructor', undefined],
    ['n'.repeat(100_000), undefined],
  ])('to %.20s is %s', (text, nearest) => {
    const all = 'there are name, settings, permissions, expires_at and grace_seconds';
    expect(suggestionFor(text, known)).toBe(nearest === undefined ? all : `did you mean ${nearest}?`);
  });

  it('is the only one if there are no others', () => {
    expect(suggestionFor('rules', ['name'])).toBe('there is only name');
  });
});
