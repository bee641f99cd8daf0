// What each node of a farm had: a bar for each, beside an equal share.

const SHARES = { width: 480, label: 18, alone: 210, among: 64, numbers: 15, gap: 12 };

const total = (m) => m.nodes.reduce((sum, node) => sum + node.events, 0);
const ratio = (value) => (known(value) ? value.toFixed(3) : UNKNOWN);
const nodeText = (m, node) => `${count(node.events)} events, ${percent(total(m) ? node.events / total(m) : 0, 2)}`;
const nodeFacts = (m) => [
  ...(m.fairness
    ? [
        ['least over most', ratio(m.fairness.min_over_max)],
        ...(known(m.fairness.worst_window)
          ? [[`in the worst ${m.fairness.window_s} s`, ratio(m.fairness.worst_window)]]
          : []),
        ["Jain's index", m.fairness.jain.toFixed(4)],
        ['variation', percent(m.fairness.variation, 2)],
      ]
    : []),
  ...m.nodes.map((node) => [`node ${node.number}`, nodeText(m, node)]),
];

function sharesChart(group) {
  const members = group.filter((m) => m.nodes && total(m) > 0);
  if (!members.length) return null;
  const { width, label, alone, among, numbers, gap } = SHARES;
  const bars = members.length > 1 ? among : alone;
  const step = label + bars + numbers + gap;
  const svg = shape('svg', {
    class: 'plot shares',
    viewBox: `0 0 ${width} ${members.length * step - gap}`,
    role: 'img',
    'aria-label': 'Events of each node',
  });
  members.forEach((m, row) => {
    const top = row * step;
    const floor = top + label + bars;
    const most = Math.max(...m.nodes.map((node) => node.events));
    const each = width / m.nodes.length;
    const least = m.fairness ? `least over most ${ratio(m.fairness.min_over_max)}` : '';
    svg.append(shape('text', { class: 'tick', x: 0, y: top + 12 }, differences(m, members, null)));
    svg.append(shape('text', { x: width, y: top + 12, 'text-anchor': 'end' }, least));
    m.nodes.forEach((node, at) => {
      const height = (node.events / most) * bars;
      const place = { x: at * each + each * 0.1, y: floor - height, width: each * 0.8, height };
      const words = shape('title', null, `node ${node.number}\n${nodeText(m, node)}`);
      svg.append(shape('rect', { ...place, fill: COLORS[0] }, words));
    });
    const equal = floor - (total(m) / m.nodes.length / most) * bars;
    svg.append(shape('path', { class: 'limit', stroke: COLORS[1], d: `M0 ${equal}H${width}` }));
    for (const at of new Set([0, m.nodes.length - 1])) {
      const middle = { x: (at + 0.5) * each, y: floor + 12, 'text-anchor': 'middle' };
      svg.append(shape('text', middle, m.nodes[at].number));
    }
  });
  const equally = element(
    'span',
    { class: 'key' },
    element('span', { class: 'swatch', style: `border-color: ${COLORS[1]}` }),
    'an equal share',
  );
  return drawing('Events of each node', 'in the counted time', element('div', { class: 'legend' }, equally), svg);
}
