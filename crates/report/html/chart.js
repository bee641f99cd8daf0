// Elements, numbers as people read them, and one kind of chart. Text only ever goes in as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const element = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const shape = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** A drawing under its title, with a quiet note beside that and what its colours mean. */
const drawing = (title, note, legend, svg) =>
  element(
    'figure',
    null,
    element('div', { class: 'chart-head' }, element('h3', null, title), element('span', { class: 'quiet' }, note)),
    legend,
    svg,
  );

const UNKNOWN = '–';
const known = (value) => typeof value === 'number' && Number.isFinite(value);

function digits(value, significant) {
  if (value === 0) return '0';
  const whole = Math.abs(value) >= 1 ? Math.floor(Math.log10(Math.abs(value))) + 1 : 1;
  return value.toFixed(Math.max(0, significant - whole));
}
function scaled(value, unit, significant = 4) {
  if (!known(value)) return UNKNOWN;
  const rounded = Number(value.toPrecision(significant));
  const [scale, prefix] = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ].find(([s]) => rounded >= s) || [1, ''];
  return digits(rounded / scale, significant) + (prefix || unit !== '/s' ? ' ' : '') + prefix + unit;
}
function time(ns) {
  if (!known(ns)) return UNKNOWN;
  const rounded = Number(ns.toPrecision(3));
  const [scale, unit] = [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'µs'],
  ].find(([s]) => rounded >= s) || [1, 'ns'];
  return digits(rounded / scale, scale > 1 ? 3 : 1) + ' ' + unit;
}
function bytes(count) {
  if (!known(count)) return UNKNOWN;
  const units = [
    [2 ** 30, 'GiB'],
    [2 ** 20, 'MiB'],
    [2 ** 10, 'KiB'],
  ];
  const exact = units.find(([unit]) => count >= unit && count % unit === 0 && count / unit < 10000);
  if (exact) return count / exact[0] + ' ' + exact[1];
  const near = count >= 100000 && units.find(([unit]) => count >= unit);
  return near ? (count / near[0]).toFixed(1) + ' ' + near[1] : count + ' B';
}
const count = (value) =>
  known(value) ? value.toLocaleString('en-US') : value === null || value === undefined ? UNKNOWN : String(value);
const percent = (share, places = 0) => (known(share) ? (share * 100).toFixed(places) + ' %' : UNKNOWN);

const short = (label) =>
  label
    .replace(/^(\d+)\.0*(?=\D|$)/, '$1')
    .replace(/^(\d+\.\d*?)0+(?=\D)/, '$1')
    .replace(/^0 .*/, '0');
const UNITS = {
  bits: (value) => scaled(value, 'bit/s'),
  operations: (value) => scaled(value, '/s'),
  time,
  bytes,
  count,
  percent: (value) => Math.round(value) + ' %',
  seconds: (value) => Number(value.toPrecision(6)) + ' s',
  tail: (value) => Number((100 - 100 / value).toPrecision(12)) + ' %',
};

const NICE = [1, 2, 5, 10];
const decade = (value) => 10 ** Math.floor(Math.log10(value));
const niceAbove = (value) => NICE.map((n) => n * decade(value)).find((n) => n >= value * 0.999999);
const niceBelow = (value) =>
  [...NICE]
    .reverse()
    .map((n) => n * decade(value))
    .find((n) => n <= value * 1.000001);

// From values to places 0..1 and back to ticks: the same rules as the plots in files.
function axis(unit, values) {
  const usable = values.filter((value) => known(value) && value > 0);
  if (!usable.length) return null;
  let low = Math.min(...usable),
    high = Math.max(...usable);
  const always = ['bytes', 'count', 'tail'].includes(unit);
  const log = always || (high / low > 30 && unit !== 'percent' && unit !== 'seconds');
  if (always) {
    const pad = unit === 'tail' ? 1 : Math.max((high / low) ** 0.03, 1.1);
    [low, high] = [low / pad, Math.max(high * pad, low * 1.5)];
  } else if (log) {
    [low, high] = [niceBelow(low), niceAbove(high)];
  } else {
    const step = niceAbove(high / 5) / 2;
    [low, high] = [0, unit === 'seconds' ? high : Math.ceil((high * 1.04) / step) * step];
  }
  const place = (value) => {
    const at = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Number.isFinite(at) ? Math.min(1, Math.max(0, at)) : null;
  };
  return { place, ticks: (most) => ticks(unit, log, low, high, most) };
}

function ticks(unit, log, low, high, most) {
  const within = (value) => value >= low * 0.999 && value <= high * 1.001;
  const powers = (base) => {
    const first = Math.ceil(Math.log(low) / Math.log(base)),
      last = Math.floor(Math.log(high) / Math.log(base));
    const stride = Math.floor((last - first) / Math.max(1, most)) + 1;
    return Array.from(
      { length: Math.max(0, Math.floor((last - first) / stride) + 1) },
      (_, i) => base ** (first + i * stride),
    );
  };
  if (unit === 'tail') return [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter(within);
  if (unit === 'bytes') return powers(2);
  if (!log) {
    const step = niceAbove((high - low) / Math.max(1, most));
    return Array.from({ length: Math.floor(((high - low) / step) * 1.000001) + 1 }, (_, i) => low + i * step);
  }
  const decades = Math.log10(high / low);
  if (decades > 3) return powers(10);
  const factors = decades > 1.5 ? [1, 3] : [1, 2, 5];
  const first = Math.floor(Math.log10(low));
  return [0, 1, 2, 3, 4].flatMap((n) => factors.map((factor) => factor * 10 ** (first + n))).filter(within);
}

const SIZE = { width: 480, height: 276, left: 82, right: 14, top: 12, bottom: 44 };

// spec: {title, note, x: {label, unit}, y: {unit}, keys: [text], series: [{label, color, on, points, band, limit, dots}]}
// points: [{x, y, text}]; band: tops over the same x; limit: [{x, y}]
function chart(spec) {
  const svg = shape('svg', {
    class: 'plot',
    viewBox: `0 0 ${SIZE.width} ${SIZE.height}`,
    role: 'img',
    'aria-label': spec.title,
  });
  const redraw = () => drawChart(svg, spec);
  const keys = spec.series.map((series) =>
    element(
      'button',
      {
        type: 'button',
        class: series.on ? null : 'more',
        'aria-pressed': String(series.on),
        title: 'Show or hide',
        onclick: (event) => {
          series.on = !series.on;
          event.currentTarget.setAttribute('aria-pressed', String(series.on));
          redraw();
        },
      },
      element('span', { class: 'swatch', style: `border-color: ${series.color}` }),
      series.label,
    ),
  );
  const notes = (spec.keys || []).map((text) =>
    element('span', { class: 'key' }, element('span', { class: 'swatch' }), text),
  );
  const hidden = keys.filter((key) => key.className === 'more').length;
  const legend = element('div', { class: 'legend short' }, ...keys, ...notes);
  if (hidden) {
    const all = element(
      'button',
      {
        type: 'button',
        class: 'all',
        onclick: () => {
          legend.classList.remove('short');
          all.remove();
        },
      },
      `+ ${hidden} more`,
    );
    legend.append(all);
  }
  redraw();
  return drawing(spec.title, spec.note || '', legend, svg);
}

function drawChart(svg, spec) {
  const shown = spec.series.filter((series) => series.on);
  const points = shown.flatMap((series) => series.points);
  const x = axis(
    spec.x.unit,
    points.map((point) => point.x),
  );
  const heights = [...points, ...shown.flatMap((series) => series.limit || [])].map((point) => point.y);
  const y = axis(spec.y.unit, [...heights, ...shown.flatMap((series) => series.band || [])]);
  svg.replaceChildren();
  const { width, height, left, right, top, bottom } = SIZE;
  if (!x || !y) {
    svg.append(shape('text', { x: width / 2, y: height / 2, 'text-anchor': 'middle' }, 'nothing chosen'));
    return;
  }
  const px = (value) => left + x.place(value) * (width - left - right);
  const py = (value) => height - bottom - y.place(value) * (height - top - bottom);
  drawAxes(svg, spec, x, y, px, py);
  const path = (list) =>
    list.map((point, i) => `${i ? 'L' : 'M'}${px(point.x).toFixed(1)} ${py(point.y).toFixed(1)}`).join('');
  for (const series of shown) {
    if (series.band) {
      const over = series.points.map((point, i) => ({ x: point.x, y: series.band[i] })).reverse();
      svg.append(
        shape('path', {
          class: 'band',
          fill: series.color,
          d: path(series.points) + path(over).replace('M', 'L') + 'Z',
        }),
      );
    }
    if (series.limit && series.limit.length > 1)
      svg.append(shape('path', { class: 'limit', stroke: series.color, d: path(series.limit) }));
    svg.append(shape('path', { class: 'curve', stroke: series.color, d: path(series.points) }));
    if (series.dots)
      svg.append(
        ...series.points.map((point) =>
          shape('circle', { class: 'dot', cx: px(point.x), cy: py(point.y), r: 3.8, fill: series.color }),
        ),
      );
  }
  follow(svg, spec, shown, px, py);
}

function drawAxes(svg, spec, x, y, px, py) {
  const { width, height, left, right, top, bottom } = SIZE;
  const floor = height - bottom;
  for (const value of y.ticks((floor - top) / 36)) {
    svg.append(shape('line', { class: 'grid', x1: left, x2: width - right, y1: py(value), y2: py(value) }));
    svg.append(
      shape(
        'text',
        { class: 'tick', x: left - 8, y: py(value) + 4, 'text-anchor': 'end' },
        short(UNITS[spec.y.unit](value)),
      ),
    );
  }
  svg.append(shape('line', { class: 'axis', x1: left, x2: width - right, y1: floor, y2: floor }));
  let free = -Infinity;
  for (const value of x.ticks((width - left - right) / 62)) {
    const label = short(UNITS[spec.x.unit](value)),
      half = label.length * 3.4;
    const at = Math.min(px(value), width - half);
    svg.append(shape('line', { class: 'axis', x1: px(value), x2: px(value), y1: floor, y2: floor + 4 }));
    if (at - half < free) continue;
    svg.append(shape('text', { class: 'tick', x: at, y: floor + 18, 'text-anchor': 'middle' }, label));
    free = at + half + 8;
  }
  svg.append(shape('text', { x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle' }, spec.x.label));
}

// Marks the point nearest to the pointer and shows its values.
function follow(svg, spec, shown, px, py) {
  const tip = document.getElementById('tip');
  const places = shown.flatMap((series) =>
    series.points.map((point) => ({ series, point, x: px(point.x), y: py(point.y) })),
  );
  const mark = shape('circle', { class: 'mark', r: 6, visibility: 'hidden' });
  svg.append(mark);
  svg.onpointerleave = () => {
    tip.hidden = true;
    mark.setAttribute('visibility', 'hidden');
  };
  svg.onpointermove = (event) => {
    const box = svg.getBoundingClientRect(),
      scale = SIZE.width / box.width;
    const at = { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
    const far = (place) => (place.x - at.x) ** 2 + ((place.y - at.y) * 0.6) ** 2;
    const nearest = places.reduce((best, place) => (far(place) < far(best) ? place : best));
    for (const [name, value] of [
      ['cx', nearest.x],
      ['cy', nearest.y],
      ['visibility', 'visible'],
    ])
      mark.setAttribute(name, value);
    const { series, point } = nearest;
    tip.textContent =
      `${series.label}\n${UNITS[spec.x.unit](point.x)}: ${UNITS[spec.y.unit](point.y)}` +
      (point.text ? `\n${point.text}` : '');
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(room, event.clientX + 14)) + 'px';
    tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 12) + 'px';
  };
}
