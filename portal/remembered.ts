import { effect, signal, type Signal } from '@preact/signals';

/** What somebody has chosen for all pages. The browser keeps it, also for the next session; it is never a secret. */
export const remembered = <T extends string>(name: string, all: readonly [T, ...T[]]): Signal<T> => {
  const kept = localStorage.getItem(name);
  const choice = signal(all.find((one) => one === kept) ?? all[0]);
  effect(() => {
    if (choice.value === all[0]) localStorage.removeItem(name);
    else localStorage.setItem(name, choice.value);
  });
  return choice;
};
