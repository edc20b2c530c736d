import { randomUUID } from 'node:crypto';
import { repeatedTexts } from '../../src/event-log/repeated-texts';

describe('repeated texts', () => {
  it('are found, and only they', () => {
    const texts = Array.from({ length: 50_000 }, () => randomUUID());
    const twice = [texts[0], texts[777], texts.at(-1)].map(String);
    const { add, find } = repeatedTexts();
    for (const text of [...texts, ...twice, String(twice[0])]) add(text);
    const { count, mayHave } = find();
    expect(count).toBe(twice.length);
    expect(texts.filter(mayHave)).toEqual(twice);
  });

  it('are none of none', () => {
    expect(repeatedTexts().find().count).toBe(0);
  });
});
