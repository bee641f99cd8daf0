// The page is complete without this: it chooses what is shown, sorts, and tells values beside the pointer.
'use strict';

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const one = (selector) => document.querySelector(selector);
const press = (button, on) => button.setAttribute('aria-pressed', String(on));

// Light and dark: as the system prefers, until the reader chooses.
const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null;
function setTheme(theme = chosenTheme || (prefersDark.matches ? 'dark' : 'light')) {
  document.documentElement.dataset.theme = theme;
  one('#theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
}
prefersDark.addEventListener('change', () => setTheme());
one('#theme').onclick = () => {
  chosenTheme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  setTheme();
};
setTheme();

// A test is chosen by its card: its plots and, unless all are asked for, its rows.
const cards = all('.test');
const sections = all('#pictures > section');
const body = one('#table tbody');
const rows = [...body.rows];
let chosen = '0';
let onlyChosen = true;
let sorted = null;

function show() {
  cards.forEach((card) => press(card, card.dataset.group === chosen));
  one('#pictures').replaceChildren(...sections.filter((section) => section.dataset.group === chosen));
  showRows();
}

function showRows() {
  one('#table').classList.toggle('only', onlyChosen);
  const shown = rows.filter((row) => !onlyChosen || row.dataset.group === chosen);
  if (sorted) {
    const value = (row) => row.cells[sorted.column].dataset.sort ?? '';
    const compare = (a, b) => (Number.isNaN(a - b) ? a.localeCompare(b) : a - b);
    const unknownLast = (a, b) => (value(a) === '') - (value(b) === '');
    shown.sort((a, b) => unknownLast(a, b) || compare(value(a), value(b)) * (sorted.rising ? 1 : -1));
  }
  body.replaceChildren(...shown);
}

cards.forEach((card) => {
  card.onclick = () => {
    chosen = card.dataset.group;
    show();
  };
});
one('#only').onchange = (event) => {
  onlyChosen = event.currentTarget.checked;
  showRows();
};
const heads = all('#table th');
heads.forEach((head, column) => {
  head.onclick = () => {
    sorted = { column, rising: !(sorted?.column === column && sorted.rising) };
    heads.forEach((other) => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', sorted.rising ? 'ascending' : 'descending');
    showRows();
  };
});
rows.forEach((row, index) => {
  row.onclick = () => {
    const details = all('#full details')[index];
    details.open = true;
    details.scrollIntoView({ block: 'center' });
  };
});

// The keys of a legend show and hide its curves, which lie in the drawing in the same order.
for (const figure of all('figure')) {
  const svg = figure.querySelector('svg');
  const curves = all('g.series', svg);
  all('.legend button[aria-pressed]', figure).forEach((key, index) => {
    const draw = (on) => {
      press(key, on);
      if (on) svg.append(curves[index]);
      else curves[index].remove();
    };
    draw(key.getAttribute('aria-pressed') === 'true');
    key.onclick = () => draw(key.getAttribute('aria-pressed') !== 'true');
  });
  all('.legend .all', figure).forEach((more) => {
    more.onclick = () => {
      more.parentElement.classList.remove('short');
      more.remove();
    };
  });
}

// The point nearest to the pointer, marked, with its values.
const tip = one('#tip');
const mark = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
mark.setAttribute('class', 'mark');
mark.setAttribute('r', '6');
const places = (series) => {
  const tips = JSON.parse(series.dataset.tips);
  const path = series.querySelector('.curve').getAttribute('d').slice(1).split('L');
  return path.map((at, index) => ({ at: at.split(' ').map(Number), text: `${series.dataset.label}\n${tips[index]}` }));
};
for (const svg of all('svg.plot:has([data-tips])')) {
  svg.onpointerleave = () => {
    tip.hidden = true;
    mark.remove();
  };
  svg.onpointermove = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const far = ({ at }) => (at[0] - x) ** 2 + ((at[1] - y) * 0.6) ** 2;
    const found = all('[data-tips]', svg).flatMap((series) => (series.places ??= places(series)));
    if (!found.length) return;
    const nearest = found.reduce((best, place) => (far(place) < far(best) ? place : best));
    mark.setAttribute('cx', nearest.at[0]);
    mark.setAttribute('cy', nearest.at[1]);
    svg.append(mark);
    tip.textContent = nearest.text;
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(room, event.clientX + 14))}px`;
    tip.style.top = `${Math.max(8, event.clientY - tip.offsetHeight - 12)}px`;
  };
}

const unfold = (open) => all('#full details').forEach((details) => (details.open = open));
one('#unfold').onclick = (event) => {
  const open = event.currentTarget.textContent === 'Open all';
  unfold(open);
  event.currentTarget.textContent = open ? 'Close all' : 'Open all';
};

// On paper: every test, every measurement, in full, and light. Chromium repeats a table's head on every printed page
// only where it holds no buttons.
one('#print').onclick = () => window.print();
let onScreen = null;
window.addEventListener('beforeprint', () => {
  onScreen = { open: all('#full details').map((details) => details.open), heads: heads.map((head) => head.firstChild) };
  setTheme('light');
  one('#pictures').replaceChildren(...sections);
  one('#table').classList.remove('only');
  body.replaceChildren(...rows);
  heads.forEach((head) => head.replaceChildren(head.textContent));
  unfold(true);
});
window.addEventListener('afterprint', () => {
  if (!onScreen) return;
  all('#full details').forEach((details, index) => (details.open = onScreen.open[index]));
  heads.forEach((head, index) => head.replaceChildren(onScreen.heads[index]));
  setTheme();
  show();
});

show();
