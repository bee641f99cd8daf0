// The page: tests to choose from, their charts, the table, and everything in full.

const { document: result, curves, tables } = JSON.parse(document.getElementById('data').textContent);
const MEANINGS = {
  rate: 'as many operations as the window allows',
  latency: 'one operation at a time',
  random: 'sizes drawn at random, the smallest rising',
  channels: 'many channels at once',
  open: 'operations due on a schedule, times counted from when they were due',
};
const COLORS = Array.from({ length: 8 }, (_, i) => `var(--c${i})`);
const SHOWN_FIRST = 6;

const measurements = result.measurements.map((m, index) => ({ ...m, index, curve: curves[index] }));
const groups = [];
for (const m of measurements) {
  const same = (group) => ['protocol', 'link', 'test'].every((key) => group[0][key] === m[key]);
  const group = groups.find(same);
  if (group) group.push(m);
  else groups.push([m]);
}

const aboutLatency = (m) => m.test === 'latency' || m.test === 'open';
const aboutOperations = (m) => !aboutLatency(m) && m.payload_bytes === 0 && m.operations > 0;
const size = (m) =>
  m.size_bytes !== null
    ? bytes(m.size_bytes)
    : m.size_min_bytes === undefined
      ? UNKNOWN
      : `${bytes(m.size_min_bytes)}..${bytes(m.size_max_bytes)}`;
const meanSize = (m) => (m.size_bytes !== null ? m.size_bytes : (m.size_min_bytes + m.size_max_bytes) / 2);
const drive = (m) => `${m.window}×${m.channels}` + (m.batch > 1 ? ` b${m.batch}` : '');
const latency = (m, key) => (m.latency_ns ? m.latency_ns[key] : null);
const busy = (m, side) => (m.cpu[side] ? m.cpu[side].percent : null);
const busier = (m) => {
  const both = [busy(m, 'local'), busy(m, 'remote')].filter(known);
  return both.length ? Math.max(...both) : null;
};
const halfWidth = (e) => (known(e.low) && known(e.high) && e.median ? (e.high - e.low) / 2 / e.median : null);
const limit = (m, key) => (m.limit ? m.limit[key] : null);
const processorPercent = (value) => (known(value) ? Math.round(value) + ' %' : UNKNOWN);
const badge = (state) =>
  element(
    'span',
    {
      class: 'badge ' + (state === 'stable' ? 'good' : state === 'failed' || state === 'interrupted' ? 'bad' : 'doubt'),
    },
    state,
  );
// The verdict's sentence without its state, which stands beside it as a badge.
const why = (m) => {
  const { state, text } = m.verdict;
  return text.startsWith(`${state}: `) ? text.slice(state.length + 2) : text;
};
// As `sim+udp` where it ran over the simulated network.
const protocol = (m) => (m.link.startsWith(`sim+${m.protocol}:`) ? 'sim+' : '') + m.protocol;
const planText = (m) =>
  `${protocol(m)} ${m.test} ${m.mode} ${size(m)}, window ${drive(m)}, ${m.wait}` +
  (m.rate_asked ? `, ${scaled(m.rate_asked, '/s')} asked` : '');

function limitText(m) {
  const texts = {
    time: limit(m, 'latency_ns'),
    bits: limit(m, 'payload_bits_per_s'),
    operations: limit(m, 'operations_per_s'),
  };
  const order = aboutLatency(m)
    ? ['time', 'operations', 'bits']
    : aboutOperations(m)
      ? ['operations', 'bits', 'time']
      : ['bits', 'operations', 'time'];
  const unit = order.find((name) => known(texts[name]));
  return unit ? UNITS[unit](texts[unit]) : UNKNOWN;
}

function intervalRates(m) {
  const byOperations = m.intervals.every((interval) => interval.payload_bytes === 0);
  let before = 0;
  return m.intervals.flatMap((interval) => {
    const length = interval.t_s - before;
    if (!(length > 0)) return [];
    before = interval.t_s;
    return [{ x: interval.t_s, y: (byOperations ? interval.operations : 8 * interval.payload_bytes) / length }];
  });
}

// What the horizontal axis counts: the first of these that differs within the group.
const ACROSS = [
  {
    of: meanSize,
    name: 'size',
    unit: 'bytes',
    label: (m) => (m.size_bytes === null ? 'mean payload of an operation' : 'payload of an operation'),
  },
  { of: (m) => m.channels, name: 'channels', unit: 'count', label: () => 'channels' },
  { of: (m) => m.window, name: 'window', unit: 'count', label: () => 'operations in flight per channel' },
  { of: (m) => m.rate_asked, name: 'asked', unit: 'count', label: () => 'operations per second asked for' },
];

function differences(m, group, across) {
  const facts = [
    ['mode', (m) => m.mode],
    ['size', size],
    ['window', (m) => `window ${m.window}`],
    ['channels', (m) => `${m.channels} channel${m.channels === 1 ? '' : 's'}`],
    ['batch', (m) => `batch ${m.batch}`],
    ['wait', (m) => m.wait],
    ['asked', (m) => (m.rate_asked ? scaled(m.rate_asked, '/s') : '')],
  ];
  const words = facts
    .filter(([name, of]) => name !== across && group.some((other) => of(other) !== of(m)))
    .map(([, of]) => of(m));
  return words.join(', ') || (across ? m.mode : `${m.mode}, ${size(m)}`);
}

function charts(group) {
  const across = ACROSS.find((candidate) => group.some((m) => candidate.of(m) !== candidate.of(group[0])));
  const specs = across ? [rateChart(group, across), cpuChart(group, across)] : [];
  const times = across ? [latencyChart(group, across)] : [];
  times.push(
    singly(
      group,
      'Distribution of times',
      { label: 'share of operations that took no longer', unit: 'tail' },
      'time',
      (m) => m.curve.map(([x, y]) => ({ x, y })),
    ),
  );
  specs[aboutLatency(group[0]) ? 'unshift' : 'push'](...times);
  const unit = group.every((m) => m.payload_bytes === 0) ? 'operations' : 'bits';
  specs.push(
    singly(
      group,
      'Rate over time',
      { label: 'time since the counted part began', unit: 'seconds' },
      unit,
      intervalRates,
    ),
  );
  return [...specs.filter((spec) => spec.series.length).map(chart), stageChart(group), sharesChart(group)];
}

function series(group, across, value, more) {
  const byLabel = new Map();
  for (const m of group) {
    const label = differences(m, group, across.name);
    byLabel.set(label, [...(byLabel.get(label) || []), m]);
  }
  const sorted = [...byLabel].map(([label, members]) => [label, members.sort((a, b) => across.of(a) - across.of(b))]);
  return sorted
    .map(([label, members], i) => {
      const usable = members.filter((m) => known(value(m)) && value(m) > 0);
      const points = usable.map((m) => ({
        x: Math.max(1, across.of(m)),
        y: value(m),
        text: `${planText(m)}\n${m.verdict.state}`,
      }));
      return { label, color: COLORS[i % COLORS.length], on: i < SHOWN_FIRST, points, dots: true, ...more(usable) };
    })
    .filter((one) => one.points.length);
}

function against(group, across, title, unit, value, key, note) {
  const limits = (usable) => ({
    limit: key
      ? usable.filter((m) => known(limit(m, key))).map((m) => ({ x: Math.max(1, across.of(m)), y: limit(m, key) }))
      : [],
  });
  const all = series(group, across, value, limits);
  const kinds = all.some((one) => one.limit.length > 1) ? [`limit (${group.find((m) => m.limit).limit.kind})`] : [];
  return {
    title,
    note,
    x: { label: across.label(group[0]), unit: across.unit },
    y: { unit },
    keys: kinds,
    series: all,
  };
}

function rateChart(group, across) {
  return group.every(aboutOperations)
    ? against(group, across, 'Operations', 'operations', (m) => m.rate.operations_per_s.median, 'operations_per_s')
    : against(group, across, 'Payload rate', 'bits', (m) => m.rate.payload_bits_per_s.median, 'payload_bits_per_s');
}
function cpuChart(group, across) {
  return against(group, across, 'CPU', 'percent', busier, null, 'of the busier side, 100 % is one processor');
}
function latencyChart(group, across) {
  const spec = against(
    group,
    across,
    'Time of an operation',
    'time',
    (m) => latency(m, 'p50'),
    'latency_ns',
    'line p50, band up to p99',
  );
  const tails = series(
    group,
    across,
    (m) => latency(m, 'p99'),
    () => ({}),
  );
  spec.series.forEach((one) => {
    const tail = tails.find((other) => other.label === one.label);
    one.band = tail && tail.points.length === one.points.length ? tail.points.map((point) => point.y) : null;
  });
  return spec;
}

function singly(group, title, x, unit, points) {
  const found = group.map((m) => ({ m, points: points(m) })).filter((one) => one.points.length > 1);
  const step = (found.length - 1) / (Math.min(found.length, SHOWN_FIRST) - 1 || 1);
  const first = new Set(Array.from({ length: SHOWN_FIRST }, (_, i) => Math.floor(i * step)));
  const members = found.map((one) => one.m);
  const shownColor = [...first];
  const all = found.map(({ m, points: list }, i) => ({
    label: differences(m, members, null),
    points: list,
    on: first.has(i),
    color: COLORS[first.has(i) ? shownColor.indexOf(i) : i % COLORS.length],
  }));
  return { title, x, y: { unit }, series: all };
}

const word = (name, value) => ({ name, value, show: (m) => value(m) ?? UNKNOWN, side: 'left' });
const figure = (name, value, unit) => ({ name, value, show: (m) => unit(value(m)), side: 'right' });
const drawn = (name, value, show, side) => ({ name, value, show, side });
const COLUMNS = [
  word('protocol', protocol),
  word('test', (m) => m.test),
  word('mode', (m) => m.mode),
  drawn('size', meanSize, size, 'right'),
  drawn('win × ch', (m) => m.window * m.channels, drive, 'right'),
  word('waits', (m) => m.wait),
  figure('operations', (m) => m.rate.operations_per_s.median, UNITS.operations),
  figure('payload', (m) => m.rate.payload_bits_per_s.median, UNITS.bits),
  figure(
    '±',
    (m) => halfWidth(m.rate.operations_per_s),
    (share) => percent(share, 1),
  ),
  figure('p50', (m) => latency(m, 'p50'), time),
  figure('p99', (m) => latency(m, 'p99'), time),
  figure('CPU here', (m) => busy(m, 'local'), processorPercent),
  figure('far', (m) => busy(m, 'remote'), processorPercent),
  drawn('limit', (m) => limit(m, 'payload_bits_per_s'), limitText, 'right'),
  word('by', (m) => limit(m, 'kind')),
  drawn('of limit', (m) => m.share_of_limit, meter, 'right'),
  word('binds', (m) => limit(m, 'binds')),
  drawn(
    'verdict',
    (m) => m.verdict.state,
    (m) => badge(m.verdict.state),
    'left',
  ),
  figure('lost', (m) => m.loss.lost, count),
  drawn('over time', (m) => m.intervals.length, sparkline, 'left'),
];
const SAME_IN_A_TEST = ['protocol', 'test'];

function cell(m, column) {
  const content = column.show(m),
    isWord = column.side === 'left' && typeof content === 'string';
  return element('td', { class: column.side === 'left' ? 'name left' : null, title: isWord ? content : null }, content);
}

function meter(m) {
  if (!known(m.share_of_limit)) return UNKNOWN;
  const width = Math.min(100, Math.max(0, m.share_of_limit * 100));
  return element(
    'span',
    null,
    element('span', { class: 'meter' }, element('i', { style: `width: ${width}%` })),
    percent(m.share_of_limit),
  );
}

function sparkline(m) {
  const rates = intervalRates(m),
    end = rates.length ? rates[rates.length - 1].x : 0,
    high = Math.max(0, ...rates.map((point) => point.y));
  const path = rates
    .map(
      (point, i) =>
        `${i ? 'L' : 'M'}${((point.x / end) * 94 + 1).toFixed(1)} ${(20 - (high ? (point.y / high) * 17 : 0)).toFixed(1)}`,
    )
    .join('');
  return rates.length > 1
    ? shape(
        'svg',
        { class: 'spark', viewBox: '0 0 96 22', role: 'img', 'aria-label': 'rate over time' },
        shape('path', { d: path }),
      )
    : UNKNOWN;
}

// Chromium repeats a table's head on every printed page only where it holds no buttons: hence `onPaper`.
const view = { group: groups[0] || [], only: true, column: null, rising: true, onPaper: false };

function drawTable() {
  const rows = view.only ? [...view.group] : [...measurements];
  if (view.column) {
    const { value } = view.column,
      isUnknown = (m) => value(m) === null || value(m) === undefined;
    const unknownLast = (a, b) => isUnknown(a) - isUnknown(b);
    const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (view.rising ? 1 : -1);
    rows.sort((a, b) => unknownLast(a, b) || order(a, b) || a.index - b.index);
  }
  const columns = COLUMNS.filter((column) => !(view.only && SAME_IN_A_TEST.includes(column.name)));
  const heads = columns.map((column) =>
    element(
      'th',
      {
        scope: 'col',
        class: column.side,
        'aria-sort': column === view.column ? (view.rising ? 'ascending' : 'descending') : null,
      },
      view.onPaper
        ? column.name
        : element('button', { type: 'button', title: 'Sort', onclick: () => sortBy(column) }, column.name),
    ),
  );
  const body = rows.map((m) =>
    element('tr', { title: 'Show in full', onclick: () => showInFull(m) }, ...columns.map((column) => cell(m, column))),
  );
  document
    .getElementById('table')
    .replaceChildren(element('thead', null, element('tr', null, ...heads)), element('tbody', null, ...body));
}

function sortBy(column) {
  view.rising = view.column === column ? !view.rising : true;
  view.column = column;
  drawTable();
}

function showInFull(m) {
  const details = document.getElementById('full').children[m.index];
  details.open = true;
  details.scrollIntoView({ block: 'center' });
}

function drawTests() {
  const headline = (group) => {
    const all = group.filter((m) => m.verdict.state !== 'failed');
    if (!all.length) return [UNKNOWN, 'nothing measured'];
    const best = (value, pick) => all.reduce((a, b) => (pick(value(a) ?? NaN, value(b) ?? NaN) ? a : b));
    if (aboutLatency(group[0])) {
      const m = best(
        (one) => latency(one, 'p50'),
        (a, b) => a <= b,
      );
      return [time(latency(m, 'p50')), `p50 at ${size(m)}`];
    }
    const key = aboutOperations(group[0]) ? 'operations_per_s' : 'payload_bits_per_s';
    const m = best(
      (one) => one.rate[key].median,
      (a, b) => a >= b,
    );
    const share = known(m.share_of_limit) ? `, ${percent(m.share_of_limit)} of ${limit(m, 'kind') || 'limit'}` : '';
    return [
      key === 'operations_per_s' ? scaled(m.rate[key].median, '/s') : scaled(m.rate[key].median, 'bit/s'),
      `at ${size(m)}${share}`,
    ];
  };
  const cards = groups.map((group) => {
    const [value, about] = headline(group);
    const states = [...new Set(group.map((m) => m.verdict.state))];
    return element(
      'button',
      {
        type: 'button',
        class: 'test',
        title: group[0].link,
        'aria-pressed': String(group === view.group),
        onclick: () => choose(group),
      },
      element('span', { class: 'name' }, `${protocol(group[0])} · ${group[0].test}`),
      element('span', { class: 'value' }, value),
      element('span', { class: 'about' }, about),
      element('span', { class: 'state' }, ...states.map(badge)),
    );
  });
  document.getElementById('tests').replaceChildren(...cards);
}

function drawPictures(shown) {
  const sections = shown
    .filter((group) => group.length)
    .map((group) =>
      element(
        'section',
        { class: 'group' },
        element('h2', null, `${protocol(group[0])} · ${group[0].test}`),
        element('p', { class: 'quiet' }, `${MEANINGS[group[0].test] || ''} · ${group[0].link}`),
        element('div', { class: 'charts' }, ...charts(group)),
      ),
    );
  document.getElementById('pictures').replaceChildren(...sections);
}

function drawTables() {
  const sections = tables.map(({ title, note, columns, rows }) => {
    // A column of words stands at its left side, as everywhere.
    const side = (index) => (rows.every((row) => /^\d/.test(row[index])) ? null : 'left');
    const cells = (row, tag) =>
      element('tr', null, ...row.map((text, index) => element(tag, { class: side(index) }, text)));
    return element(
      'section',
      { class: 'block' },
      element('h2', null, title),
      element('p', { class: 'quiet' }, note),
      element(
        'div',
        { class: 'scroll' },
        element(
          'table',
          null,
          element('thead', null, cells(columns, 'th')),
          element('tbody', null, ...rows.map((row) => cells(row, 'td'))),
        ),
      ),
    );
  });
  document.getElementById('tables').replaceChildren(...sections);
}

function choose(group) {
  view.group = group;
  drawTests();
  drawPictures([group]);
  drawTable();
}
