// Everything in full: doubts, plans, limits, environment; and what the buttons of the page do.

function facts(list, pairs) {
  for (const [name, value] of pairs) {
    const unknown = value === null || value === undefined || value === '' || value === UNKNOWN;
    list.append(
      element('dt', null, name),
      element('dd', { class: unknown ? 'unknown' : null }, unknown ? 'unknown' : String(value)),
    );
  }
  return list;
}
const part = (title, pairs) =>
  element('div', null, element('h3', null, title), facts(element('dl', { class: 'facts' }), pairs));

function estimate(value, text) {
  const interval =
    known(value.low) && known(value.high)
      ? `, ${value.confidence} % interval ${text(value.low)} to ${text(value.high)}`
      : '';
  return `${text(value.median)}${interval}, best ${text(value.best)}`;
}

function process(one, demand) {
  if (!one) return null;
  const switches = `${count(one.voluntary_switches)} waits, ${count(one.involuntary_switches)} preemptions`;
  const times = `${digits(one.user_s, 3)} s user, ${digits(one.system_s, 3)} s system`;
  return (
    `${digits(one.percent, 3)} %: ${times}; ${switches}; ${bytes(one.max_rss_bytes)} resident` +
    (known(demand) ? `; ${time(demand)} per operation` : '')
  );
}

const planFacts = (m) => [
  ['link', m.link],
  ['test', `${m.test}: ${MEANINGS[m.test] || ''}`],
  ['mode', m.mode],
  ['size', size(m)],
  ['window', `${m.window} in flight per channel`],
  ['channels', m.channels],
  ['batch', `${m.batch} per packet`],
  ...(m.rate_asked ? [['rate asked', scaled(m.rate_asked, '/s')]] : []),
  ['waits', m.wait],
  ['seed', m.seed],
  ['repeats', m.repeats],
];
const foundFacts = (m) => [
  ['operations', `${count(m.operations)} in ${digits(m.elapsed_s || 0, 4)} s`],
  ['payload', bytes(m.payload_bytes)],
  ['operation rate', estimate(m.rate.operations_per_s, UNITS.operations)],
  ['payload rate', estimate(m.rate.payload_bits_per_s, UNITS.bits)],
  [
    'time',
    m.latency_ns &&
      ['min', 'p50', 'p90', 'p99', 'p99_9', 'max']
        .map((key) => `${key.replace('_', '.')} ${time(m.latency_ns[key])}`)
        .join(', '),
  ],
  ['mean time', m.latency_ns && `${time(m.latency_ns.mean)} of ${count(m.latency_ns.count)}`],
  [
    'loss',
    Object.entries(m.loss)
      .map(([name, value]) => `${count(value)} ${name}`)
      .join(', '),
  ],
];
const costFacts = (m) => [
  ['machine', known(m.cpu.machine_percent) ? `${digits(m.cpu.machine_percent, 3)} % of all processors` : null],
  ['here', process(m.cpu.local, m.cpu.local_ns_per_operation)],
  ['far end', process(m.cpu.remote, m.cpu.remote_ns_per_operation)],
];
const limitFacts = (m) =>
  m.limit
    ? [
        ['limit', limitText(m)],
        ['payload rate', UNITS.bits(m.limit.payload_bits_per_s)],
        ['operation rate', UNITS.operations(m.limit.operations_per_s)],
        ['time', time(m.limit.latency_ns)],
        ['comes from', m.limit.kind],
        ['what binds', m.limit.binds],
        ['formula', m.limit.formula],
        ['assumes', m.limit.assumes],
        ['share reached', percent(m.share_of_limit, 1)],
      ]
    : [['limit', null]];

function drawFull() {
  const entries = measurements.map((m) =>
    element(
      'details',
      null,
      element('summary', null, planText(m), badge(m.verdict.state)),
      element(
        'div',
        { class: 'parts' },
        part('Plan', planFacts(m)),
        part('Found', foundFacts(m)),
        part('Limit', limitFacts(m)),
        part('Cost', costFacts(m)),
        m.stages.length ? part('Stages', m.stages.map(stageFact)) : null,
        m.nodes ? part('Nodes', nodeFacts(m)) : null,
        part('Verdict', [
          ['state', m.verdict.state],
          ['why', why(m)],
        ]),
      ),
    ),
  );
  document.getElementById('full').replaceChildren(...entries);
}

function drawDoubts() {
  const items = measurements.flatMap((m) => {
    const lost = Object.entries(m.loss)
      .filter(([, value]) => value > 0)
      .map(([name, value]) => `${count(value)} ${name}`);
    const sentences = m.verdict.state === 'stable' ? [] : [[badge(m.verdict.state), ` ${why(m)}`]];
    if (lost.length) sentences.push([`${lost.join(', ')} of ${count(m.operations)} operations`]);
    return sentences.map((sentence) => element('li', null, `${planText(m)}: `, ...sentence));
  });
  document.getElementById('doubts').replaceChildren(...items);
  document.getElementById('doubts-block').hidden = items.length === 0;
}

function coalescence(nic) {
  const wait = (usecs, adaptive) => (known(usecs) ? `${usecs} µs${adaptive ? ', adaptive' : ''}` : 'unknown');
  const some = known(nic.rx_usecs) || known(nic.tx_usecs);
  return some
    ? `receive ${wait(nic.rx_usecs, nic.rx_adaptive)}; transmit ${wait(nic.tx_usecs, nic.tx_adaptive)}`
    : null;
}

function drawEnvironment() {
  const e = result.environment,
    nic = e.nic,
    clock = e.clock;
  facts(document.getElementById('environment'), [
    ['host', e.host],
    ['kernel', e.kernel],
    ['processor', e.cpu],
    ['processors', e.cores],
    ['memory', known(e.memory_bytes) ? bytes(e.memory_bytes) : null],
    ['hypervisor', e.hypervisor],
    ['frequency governor', e.governor],
    ['placement', e.placement],
    ['congestion control', e.congestion_control],
    ['MTU', e.mtu],
    [
      'interface',
      nic &&
        [nic.name, nic.driver, nic.speed_mbit_per_s && `${nic.speed_mbit_per_s} Mbit/s`, nic.duplex]
          .filter(Boolean)
          .join(', '),
    ],
    ...(nic
      ? [
          ['coalescence', coalescence(nic)],
          ['offloads', nic.offloads.join(', ') || 'none'],
        ]
      : []),
    ['clock', clock && `${clock.source}, one reading ${time(clock.cost_ns)}`],
    ['started', e.started],
    ['command line', e.arguments.join(' ')],
  ]);
  const about = [e.host, e.kernel, e.cpu, e.started].filter(Boolean).join(' · ');
  document.getElementById('provenance').textContent = about;
  const { name, version, commit } = result.tool;
  document.getElementById('footer').textContent =
    `${name} ${version}${commit ? ` (${commit})` : ''}, ${result.schema}. This page is complete: it asks nothing of the network.`;
}

const root = document.documentElement,
  themeButton = document.getElementById('theme');
function setTheme(theme) {
  root.dataset.theme = theme;
  themeButton.textContent = theme === 'dark' ? 'Light' : 'Dark';
}
const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null;
const themeNow = () => chosenTheme || (prefersDark.matches ? 'dark' : 'light');
prefersDark.addEventListener('change', () => setTheme(themeNow()));
themeButton.addEventListener('click', () => {
  chosenTheme = themeNow() === 'dark' ? 'light' : 'dark';
  setTheme(chosenTheme);
});

function unfold(open) {
  for (const details of document.querySelectorAll('#full details')) details.open = open;
}
document.getElementById('unfold').addEventListener('click', (event) => {
  const open = event.currentTarget.textContent === 'Open all';
  unfold(open);
  event.currentTarget.textContent = open ? 'Close all' : 'Open all';
});
document.getElementById('only').addEventListener('change', (event) => {
  view.only = event.currentTarget.checked;
  drawTable();
});
document.getElementById('print').addEventListener('click', () => window.print());

// On paper: every test, every measurement, in full, and light.
let onScreen = null;
window.addEventListener('beforeprint', () => {
  onScreen = { only: view.only, open: [...document.querySelectorAll('#full details')].map((details) => details.open) };
  view.only = false;
  view.onPaper = true;
  setTheme('light');
  drawPictures(groups);
  drawTable();
  unfold(true);
});
window.addEventListener('afterprint', () => {
  if (!onScreen) return;
  view.only = onScreen.only;
  view.onPaper = false;
  setTheme(themeNow());
  [...document.querySelectorAll('#full details')].forEach((details, i) => {
    details.open = onScreen.open[i];
  });
  choose(view.group);
});

setTheme(themeNow());
drawEnvironment();
drawDoubts();
drawTables();
drawFull();
choose(view.group);
