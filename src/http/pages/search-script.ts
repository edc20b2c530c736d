/**
 * Runs in the browser, on the API reference only. Typing hides the calls that lack one of the words, in the list and on
 * the page; the list marks the call that is in view. The page is whole without it.
 */
export const SEARCH_SCRIPT = `
const list = document.querySelector('.calls');
const search = list.querySelector('.search');
const input = search.querySelector('input');
const count = search.querySelector('output');
const toggle = list.querySelector('.toggle input');
const links = Array.from(list.querySelectorAll('a'));
const calls = Array.from(document.querySelectorAll('.reference section'), (section) => ({
  section,
  text: section.textContent.toLowerCase(),
  link: links.find(({ hash }) => hash === '#' + section.id),
}));

const show = () => {
  const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const { section, text, link } of calls) {
    const fits = words.every((word) => text.includes(word));
    section.hidden = link.parentElement.hidden = !fits;
    if (fits) shown += 1;
  }
  count.textContent = words.length === 0 ? '' : shown + ' of ' + calls.length;
};

search.hidden = false;
input.addEventListener('input', show);
show();

document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.matches('input')) return;
  event.preventDefault();
  toggle.checked = true;
  input.focus();
});
list.addEventListener('click', (event) => {
  if (event.target.matches('a')) toggle.checked = false;
});

const inView = new Set();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries)
    if (isIntersecting) inView.add(target);
    else inView.delete(target);
  const current = calls.find(({ section }) => inView.has(section));
  for (const { link } of calls) link.removeAttribute('aria-current');
  if (current === undefined) return;
  current.link.setAttribute('aria-current', 'true');
  current.link.scrollIntoView({ block: 'nearest' });
}, { rootMargin: '-10% 0px -60% 0px' });
for (const { section } of calls) observer.observe(section);
`;
