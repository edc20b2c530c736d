import { turns } from '../../src/async/turns';
import { deferred, refusedWith } from '../support/waiting';

describe('turns', () => {
  it('are given to so many at a time, in the order in which they were asked for', async () => {
    const inTurn = turns(2);
    const begun: number[] = [];
    const works = [0, 1, 2, 3].map((n) => {
      const ended = deferred();
      const done = inTurn(async () => {
        begun.push(n);
        await ended.promise;
        return n;
      });
      return { end: ended.resolve, done };
    });
    const [first, second, third, fourth] = works as [
      (typeof works)[0],
      (typeof works)[0],
      (typeof works)[0],
      (typeof works)[0],
    ];
    expect(begun).toEqual([0, 1]);
    second.end();
    expect(await second.done).toBe(1);
    expect(begun).toEqual([0, 1, 2]);
    third.end();
    await third.done;
    expect(begun).toEqual([0, 1, 2, 3]);
    first.end();
    fourth.end();
    expect(await Promise.all([first.done, fourth.done])).toEqual([0, 3]);
  });

  it('end when the work fails', async () => {
    const inTurn = turns(1);
    expect(await refusedWith(inTurn(() => Promise.reject(new Error('broken'))))).toBe('Error: broken');
    expect(await inTurn(async () => 'next')).toBe('next');
  });
});
